// A library whose namespaces and annotations are macros of its own.
#pragma once
#include "parts/marks.h"
#include <type_traits>

LIB_BEGIN
template <typename T, std::size_t N> struct span {
    T* first;
    LIB_CALL T& operator[](std::size_t at) const { return first[at * N]; }
};
template <typename T, typename = std::enable_if_t<std::is_floating_point<T>::value>>
LIB_CALL T half_of(T x) { return x / 2; }
LIB_END
