
namespace K_launcher {

/* A tensor map. Lists begin with the innermost dimension; strides are elements, 0 where there are no gaps. */
struct Map { unsigned element, bytes, rank; long long sizes[5], strides[5], box[5], steps[5], swizzle, interleave, l2_promotion, nan_fill; };

/* The driver's encoder, looked up once. */
struct Encoder {
  CUresult (*tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
      CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = nullptr;
  Encoder() {
    if (void *library = dlopen("libcuda.so.1", RTLD_NOW)) find(library, tiled, "cuTensorMapEncodeTiled");
  }
};
inline const Encoder &encoder() { static const Encoder loaded; return loaded; }

/* Encodes a map of the tensor at an address. */
inline K_status encode(CUtensorMap &to, const Map &map, const void *address, const char *name) {
  if (!encoder().tiled)
    return failed(CUDA_ERROR_NOT_SUPPORTED, "the driver has no cuTensorMapEncodeTiled: it is older than CUDA 12");
  cuuint64_t sizes[5] = {}, strides[5] = {};
  cuuint32_t box[5] = {}, steps[5] = {};
  long long packed = map.bytes;
  for (unsigned i = 0; i < map.rank; ++i) {
    packed *= map.sizes[i];
    sizes[i] = static_cast<cuuint64_t>(map.sizes[i]);
    strides[i] = static_cast<cuuint64_t>(map.strides[i] ? map.strides[i] * map.bytes : packed);
    box[i] = static_cast<cuuint32_t>(map.box[i]);
    steps[i] = static_cast<cuuint32_t>(map.steps[i]);
  }
  const CUresult got = encoder().tiled(&to, static_cast<CUtensorMapDataType>(map.element), map.rank, const_cast<void *>(address), sizes, strides, box, steps,
      map.interleave == 32 ? CU_TENSOR_MAP_INTERLEAVE_32B : map.interleave == 16 ? CU_TENSOR_MAP_INTERLEAVE_16B : CU_TENSOR_MAP_INTERLEAVE_NONE,
      map.swizzle == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : map.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : map.swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE,
      map.l2_promotion == 256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : map.l2_promotion == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : map.l2_promotion == 64 ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B : CU_TENSOR_MAP_L2_PROMOTION_NONE,
      map.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (got != CUDA_SUCCESS) return failed(got, "the driver refuses the tensor map %s: %s", name, text_of(got));
  return static_cast<K_status>(0);
}

} /* namespace K_launcher */
