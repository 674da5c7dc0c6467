/* Not guarded: C lets each inclusion follow NDEBUG anew. */
#undef assert
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
extern "C" __device__ void __assertfail(const char*, const char*, unsigned int, const char*, decltype(sizeof(0)));
#define assert(...) ((__VA_ARGS__) ? (void)0 : __assertfail(#__VA_ARGS__, __FILE__, __LINE__, __func__, 1))
#endif
