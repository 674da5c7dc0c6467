
namespace K_launcher {

/* The driver's launch with attributes, looked up once. */
struct Attributed {
  CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **) = nullptr;
  Attributed() {
    if (void *library = dlopen("libcuda.so.1", RTLD_NOW)) find(library, launch, "cuLaunchKernelEx");
  }
};
inline const Attributed &attributed() { static const Attributed loaded; return loaded; }

/* Launches one kernel in clusters; a cluster of one block is none. */
inline K_status launch_clusters(const Code &code, int number, const char *name, const K_launch_extents &extents, bool cooperative, K_stream stream, void **values) {
  const CUfunction function = code.functions[static_cast<size_t>(number)];
  const long long *g = extents.grid, *b = extents.block, *c = extents.cluster;
  if (!extents.runs)
    return failed(CUDA_ERROR_INVALID_VALUE, "%s: grid %lld x %lld x %lld in clusters of %lld x %lld x %lld, block %lld x %lld x %lld or %lld bytes of shared memory are beyond CUDA's or the device's limits",
        name, g[0], g[1], g[2], c[0], c[1], c[2], b[0], b[1], b[2], extents.shared_bytes);
  if (c[0] * c[1] * c[2] == 1) return launch(code, number, name, extents, cooperative, stream, values);
  if (!attributed().launch) return failed(CUDA_ERROR_NOT_SUPPORTED, "the driver has no cuLaunchKernelEx: it is older than CUDA 11.8");
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = static_cast<unsigned>(c[0]);
  attributes[0].value.clusterDim.y = static_cast<unsigned>(c[1]);
  attributes[0].value.clusterDim.z = static_cast<unsigned>(c[2]);
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = 1;
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(g[0]);
  config.gridDimY = static_cast<unsigned>(g[1]);
  config.gridDimZ = static_cast<unsigned>(g[2]);
  config.blockDimX = static_cast<unsigned>(b[0]);
  config.blockDimY = static_cast<unsigned>(b[1]);
  config.blockDimZ = static_cast<unsigned>(b[2]);
  config.sharedMemBytes = static_cast<unsigned>(extents.shared_bytes);
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = cooperative ? 2 : 1;
  CUresult got = CUDA_SUCCESS;
  if (extents.shared_bytes > 48 * 1024) got = driver().set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(extents.shared_bytes));
  /* Not every GPU with clusters has larger ones. */
  if (got == CUDA_SUCCESS && c[0] * c[1] * c[2] > 8) got = driver().set(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  if (got == CUDA_SUCCESS) got = attributed().launch(&config, function, values, nullptr);
  if (got != CUDA_SUCCESS) return failed(got, "%s: the launch in clusters of %lld x %lld x %lld fails: %s", name, c[0], c[1], c[2], text_of(got));
  return static_cast<K_status>(0);
}

} /* namespace K_launcher */
