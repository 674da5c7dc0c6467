
namespace K_launcher {

/* A tensor map. Lists begin with the innermost dimension; strides are elements, 0 where there are no gaps. The corners are those of an
   im2col map, which has a box of channels and pixels. */
struct Map { unsigned element, bytes, rank; long long sizes[5], strides[5], box[5], steps[5], lower[3], upper[3], im2col, swizzle, swizzle_atom, interleave, l2_promotion, nan_fill; };

/* The driver's encoders, looked up once. */
struct Encoder {
  CUresult (*tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
      CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = nullptr;
  CUresult (*im2col)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,
      const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = nullptr;
  Encoder() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return;
    find(library, tiled, "cuTensorMapEncodeTiled");
    find(library, im2col, "cuTensorMapEncodeIm2col");
  }
};
inline const Encoder &encoder() { static const Encoder loaded; return loaded; }

/* Encodes a map of the tensor at an address. */
inline K_status encode(CUtensorMap &to, const Map &map, const void *address, const char *name) {
  if (!encoder().tiled || !encoder().im2col)
    return failed(CUDA_ERROR_NOT_SUPPORTED, "the driver cannot encode tensor maps: it is older than CUDA 12");
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
  int lower[3] = {}, upper[3] = {};
  for (unsigned i = 0; i < 3; ++i) {
    lower[i] = static_cast<int>(map.lower[i]);
    upper[i] = static_cast<int>(map.upper[i]);
  }
  const CUtensorMapDataType element = static_cast<CUtensorMapDataType>(map.element);
  const CUtensorMapInterleave interleave = map.interleave == 32 ? CU_TENSOR_MAP_INTERLEAVE_32B : map.interleave == 16 ? CU_TENSOR_MAP_INTERLEAVE_16B : CU_TENSOR_MAP_INTERLEAVE_NONE;
  const CUtensorMapSwizzle swizzle = map.swizzle_atom == 64 ? static_cast<CUtensorMapSwizzle>(6) : map.swizzle_atom == 32 ? static_cast<CUtensorMapSwizzle>(4) : map.swizzle == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : map.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : map.swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
  const CUtensorMapL2promotion promotion = map.l2_promotion == 256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : map.l2_promotion == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : map.l2_promotion == 64 ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B : CU_TENSOR_MAP_L2_PROMOTION_NONE;
  const CUtensorMapFloatOOBfill fill = map.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  void *tensor = const_cast<void *>(address);
  const CUresult got = map.im2col
      ? encoder().im2col(&to, element, map.rank, tensor, sizes, strides, lower, upper, box[0], box[1], steps, interleave, swizzle, promotion, fill)
      : encoder().tiled(&to, element, map.rank, tensor, sizes, strides, box, steps, interleave, swizzle, promotion, fill);
  if (got != CUDA_SUCCESS) return failed(got, "the driver refuses the tensor map %s: %s", name, text_of(got));
  return static_cast<K_status>(0);
}

} /* namespace K_launcher */
