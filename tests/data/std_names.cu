// Names of the standard library that headers of device code use.
#include <type_traits>
#include <utility>
#include <limits>
#include <array>
#include <tuple>
#include <functional>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <numeric>
#include <iterator>
#include <initializer_list>
#include <algorithm>
#include <variant>
#if __cplusplus >= 202002L
#include <bit>
#include <span>
#include <concepts>
#include <numbers>
#endif
struct aggregate { int a; float b; };
__device__ int total(std::initializer_list<int> all) { int sum = 0; for (int each : all) sum += each; return sum; }
extern "C" __global__ void k(int *x) {
  static_assert(std::is_aggregate_v<aggregate> && std::is_trivially_default_constructible_v<aggregate>);
  static_assert(std::is_nothrow_move_constructible<aggregate>::value && std::is_swappable_v<int> && std::is_invocable_r_v<int, int (*)(int), int>);
  static_assert(std::has_unique_object_representations_v<int> && !std::is_member_function_pointer_v<int>);
  static_assert(std::is_same_v<std::tuple_element_t<1, std::tuple<int, float>>, float> && std::tuple_size_v<std::array<int, 3>> == 3);
  static_assert(std::tuple_size<std::pair<int, int>>::value == 2);
  static_assert(std::numeric_limits<float>::round_style == std::round_to_nearest);
  auto [a, b] = std::tuple<int, float>{1, 2.f};
  auto [c, d] = std::make_pair(3, 4);
  std::array<int, 3> e{5, 6, 7};
  std::optional<int> f = std::nullopt; f = 8;
  std::pair<int, int> g(std::piecewise_construct, std::forward_as_tuple(9), std::forward_as_tuple(10));
  auto h = std::make_from_tuple<std::pair<int, float>>(std::tuple<int, float>{11, 12.f});
  std::byte i{13};
  std::variant<int, float> v = 2;
  std::int_least16_t j = 14; std::max_align_t *m = nullptr;
  int k = std::accumulate(e.begin(), e.end(), 0) + std::gcd(12, 18) + *std::next(std::begin(e));
  std::reference_wrapper<int> r = std::ref(k);
  r.get() += std::logical_not<>{}(0) + std::invoke([](int x) { return x; }, 3) + std::get<1>(e) + (int)std::distance(e.begin(), e.end());
  std::complex<float> z{3, 4};
  x[1] = std::abs(-1) + (int)(std::sqrt(4.f) + std::exp(0.) + std::pow(2.f, 2.f) + std::abs(-2.f) + std::log(1.) + std::sin(0.f) + fabs(-1.) + abs(-3) + sqrt(9.f));
  int n[3] = {1, 2, 3};

  x[0] = a + (int)b + c + d + e[0] + *f + g.first + h.first + (int)i + j + k + (m == nullptr) + (int)abs(z) + total({1, 2}) + (int)std::size(n) + std::get<int>(v) + std::min({4, 2, 3}) + std::max({1, 9});
#if __cplusplus >= 202002L
  std::span<int> s(n, 3);
  x[0] += std::popcount(7u) + std::bit_cast<int>(1.0f) + s[1] + (std::integral<int> ? 1 : 0) + std::cmp_less(-1, 1u) + (int)std::numbers::pi;
#endif
}
