// Host code that does not compile for the device.
#pragma once
#define SHOWN(x) std::string(#x)
inline std::string shown() { return SHOWN(shown); }
