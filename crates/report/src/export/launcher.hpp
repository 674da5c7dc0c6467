#if defined(_WIN32)
#error "the launcher loads the driver by dlopen: POSIX systems only"
#endif
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace K_launcher {

/* Machine code or PTX that was compiled ahead, for these values of the macros. */
struct Image { int code; const char *macros; int sm; bool specific, ptx; const unsigned char *data; size_t size; const char *const *symbols; };

struct Code { std::vector<CUfunction> functions; CUmodule module; };

struct Device { char name[256]; int major, minor; };

inline std::string &message() { thread_local std::string text; return text; }
inline int &last_chosen() { thread_local int chosen = -1; return chosen; }

/* Notes what went wrong, and returns the error. */
inline K_status failed(int error, const char *format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  message() = text;
  return static_cast<K_status>(error);
}

/* The functions of a library, by name. */
template <class F> bool find(void *library, F &function, const char *name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*current)(CUcontext *) = nullptr;
  CUresult (*device)(CUdevice *) = nullptr;
  CUresult (*name)(char *, int, CUdevice) = nullptr;
  CUresult (*attribute)(int *, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*load)(CUmodule *, const void *) = nullptr;
  CUresult (*function)(CUfunction *, CUmodule, const char *) = nullptr;
  CUresult (*set)(CUfunction, CUfunction_attribute, int) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **) = nullptr;
  CUresult (*cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **) = nullptr;
  CUresult (*error)(CUresult, const char **) = nullptr;
  bool loaded = false;
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    loaded = library && find(library, init, "cuInit") && find(library, current, "cuCtxGetCurrent") && find(library, device, "cuCtxGetDevice")
      && find(library, name, "cuDeviceGetName") && find(library, attribute, "cuDeviceGetAttribute") && find(library, load, "cuModuleLoadData")
      && find(library, function, "cuModuleGetFunction") && find(library, set, "cuFuncSetAttribute") && find(library, launch, "cuLaunchKernel")
      && find(library, cooperative, "cuLaunchCooperativeKernel") && find(library, error, "cuGetErrorString") && init(0) == CUDA_SUCCESS;
  }
};
inline Driver &driver() { static Driver loaded; return loaded; }

inline const char *text_of(CUresult error) {
  const char *text = nullptr;
  return driver().error(error, &text) == CUDA_SUCCESS && text ? text : "unknown error";
}

/* The device of the current context. */
inline K_status current(Device &found, CUcontext &context) {
  Driver &d = driver();
  if (!d.loaded) return failed(CUDA_ERROR_NOT_INITIALIZED, "the driver libcuda.so.1 cannot be loaded, or is older than CUDA 11");
#ifndef K_UPPER_DRIVER_API
  CUdevice device = 0;
  int number = 0;
  cudaError_t ready = cudaGetDevice(&number);
  /* Makes the primary context current where it is not; a stream's capture refuses the call. */
  if (ready == cudaSuccess && (d.current(&context) != CUDA_SUCCESS || !context || d.device(&device) != CUDA_SUCCESS || device != number)) ready = cudaFree(nullptr);
  if (ready != cudaSuccess) return failed(ready, "no CUDA device is ready: %s", cudaGetErrorString(ready));
#else
  CUdevice device = 0;
#endif
  if (d.current(&context) != CUDA_SUCCESS || !context || d.device(&device) != CUDA_SUCCESS)
    return failed(CUDA_ERROR_INVALID_CONTEXT, "no context is current: call cuCtxSetCurrent before");
  CUresult got = d.name(found.name, sizeof found.name, device);
  if (got == CUDA_SUCCESS) got = d.attribute(&found.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (got == CUDA_SUCCESS) got = d.attribute(&found.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (got != CUDA_SUCCESS) return failed(got, "the device cannot be queried: %s", text_of(got));
  return static_cast<K_status>(0);
}

/* Loads a module and its kernels. */
inline CUresult load(Code &code, const void *image, const std::vector<std::string> &symbols) {
  CUresult got = driver().load(&code.module, image);
  for (const std::string &symbol : symbols) {
    CUfunction function = nullptr; /* of a launch that the configuration never makes, there is none */
    if (got == CUDA_SUCCESS && !symbol.empty()) got = driver().function(&function, code.module, symbol.c_str());
    code.functions.push_back(function);
  }
  return got;
}

struct Nvrtc {
  typedef struct _nvrtcProgram *Program;
  int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *) = nullptr;
  int (*add)(Program, const char *) = nullptr;
  int (*compile)(Program, int, const char *const *) = nullptr;
  int (*log_size)(Program, size_t *) = nullptr;
  int (*log)(Program, char *) = nullptr;
  int (*size)(Program, size_t *) = nullptr;
  int (*get)(Program, char *) = nullptr;
  int (*lowered)(Program, const char *, const char **) = nullptr;
  int (*destroy)(Program *) = nullptr;
  bool loaded = false;
  std::vector<std::string> includes;
  Nvrtc() {
    std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
    if (const char *own = getenv("K_UPPER_NVRTC")) names.insert(names.begin(), own);
    void *library = nullptr;
    for (const std::string &name : names)
      if (!library) library = dlopen(name.c_str(), RTLD_NOW);
    loaded = library && find(library, create, "nvrtcCreateProgram") && find(library, add, "nvrtcAddNameExpression")
      && find(library, compile, "nvrtcCompileProgram") && find(library, log_size, "nvrtcGetProgramLogSize") && find(library, log, "nvrtcGetProgramLog")
      && find(library, size, "nvrtcGetCUBINSize") && find(library, get, "nvrtcGetCUBIN") && find(library, lowered, "nvrtcGetLoweredName")
      && find(library, destroy, "nvrtcDestroyProgram");
    Dl_info info;
    if (loaded && dladdr(reinterpret_cast<void *>(create), &info) && info.dli_fname) {
      const std::string path = info.dli_fname;
      const size_t folder = path.rfind('/');
      if (folder != std::string::npos) {
        includes.push_back("-I" + path.substr(0, folder) + "/../include");
        int major = 0, minor = 0, (*version)(int *, int *) = nullptr;
        if (find(library, version, "nvrtcVersion") && !version(&major, &minor)) /* NVRTC looks for it by its name alone */
          dlopen((path.substr(0, folder) + "/libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor)).c_str(), RTLD_NOW | RTLD_GLOBAL);
      }
    }
    for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const char *root = getenv(variable)) includes.push_back("-I" + std::string(root) + "/include");
    includes.push_back("-I/usr/local/cuda/include");
    for (size_t i = 0, count = includes.size(); i < count; ++i) includes.push_back(includes[i] + "/cccl"); /* cuda/ and cub/ since CUDA 13 */
  }
};
inline Nvrtc &nvrtc() { static Nvrtc loaded; return loaded; }

/* The template, with the suffix of its compile target and the first architecture that has it. */
struct Source { const char *features; int first_with_features; const char *name; const char *const *text; const char *const *const *headers; const char *const *header_names; int header_count; };

inline std::string joined(const char *const *parts) {
  std::string all;
  while (*parts) all += *parts++;
  return all;
}

/* A compiled program: its code, the names of its kernels there, and the compiler's messages. */
struct Built { std::vector<char> image; std::vector<std::string> symbols; std::string log; };

/* Compiles a program with NVRTC and returns its error, 0 if there is none. */
inline int build(Built &built, const Source &source, const std::string &text, const std::vector<std::string> &options, const char *const *kernels) {
  Nvrtc &n = nvrtc();
  std::vector<const char *> flags;
  for (const std::string &option : options) flags.push_back(option.c_str());
  std::vector<std::string> headers;
  std::vector<const char *> texts;
  for (int i = 0; i < source.header_count; ++i) headers.push_back(joined(source.headers[i]));
  for (const std::string &header : headers) texts.push_back(header.c_str());
  Nvrtc::Program program = nullptr;
  int got = n.create(&program, text.c_str(), source.name, source.header_count, texts.data(), source.header_names);
  for (const char *const *kernel = kernels; !got && *kernel; ++kernel)
    if (**kernel) got = n.add(program, *kernel);
  if (!got) got = n.compile(program, static_cast<int>(flags.size()), flags.data());
  size_t size = 0;
  if (got && program && !n.log_size(program, &size) && size > 1) {
    built.log.resize(size);
    n.log(program, &built.log[0]);
  }
  for (const char *const *kernel = kernels; !got && *kernel; ++kernel) {
    const char *symbol = "";
    if (**kernel) got = n.lowered(program, *kernel, &symbol);
    if (!got) built.symbols.push_back(symbol);
  }
  if (!got) got = n.size(program, &size);
  if (!got) {
    built.image.resize(size);
    got = n.get(program, built.image.data());
  }
  if (program) n.destroy(&program);
  return got;
}

/* Compiles the kernel for these macros and the device, and loads it. */
inline K_status compile(Code &code, const Source &source, const std::string &macros, const char *const *own, const char *const *kernels, const Device &device) {
  Nvrtc &n = nvrtc();
  if (!n.loaded)
    return failed(CUDA_ERROR_NO_BINARY_FOR_GPU, "no embedded code fits sm_%d%d and these sizes, and libnvrtc.so cannot be loaded: install it, or name it in K_UPPER_NVRTC", device.major, device.minor);
  const bool suffixed = 10 * device.major + device.minor >= source.first_with_features;
  std::vector<std::string> options = {"--gpu-architecture=sm_" + std::to_string(device.major) + std::to_string(device.minor) + (suffixed ? source.features : "")};
  while (*own) options.push_back(*own++);
  options.insert(options.end(), n.includes.begin(), n.includes.end());
  const std::string text = macros + joined(source.text);
  Built built;
  int got = build(built, source, text, options, kernels);
  if (got && !(suffixed && *source.features) && built.log.find("not supported on .target") != std::string::npos) {
    /* An instruction such as wgmma, which only the target of one architecture has. */
    Built specific;
    options[0] += "a";
    const int again = build(specific, source, text, options, kernels);
    if (!again) { got = again; built = std::move(specific); }
  }
  if (got) return failed(CUDA_ERROR_INVALID_SOURCE, "NVRTC does not compile the kernel for sm_%d%d (error %d): %s", device.major, device.minor, got, built.log.c_str());
  const CUresult loaded = load(code, built.image.data(), built.symbols);
  if (loaded != CUDA_SUCCESS)
    return failed(loaded, "the driver refuses code of NVRTC for sm_%d%d: %s; it may be older than NVRTC", device.major, device.minor, text_of(loaded));
  return static_cast<K_status>(0);
}

/* The loaded code for these macros: embedded for the device, else embedded PTX, else compiled now. */
inline K_status loaded(const Code *&found, int number, const std::string &macros, const Source &source, const char *const *options, const char *const *kernels,
    const Image *images, int image_count, const Device &device, CUcontext context) {
  static std::mutex lock;
  static std::map<std::tuple<CUcontext, int, std::string>, Code> cache;
  const std::lock_guard<std::mutex> guard(lock);
  const auto key = std::make_tuple(context, number, macros);
  const auto known = cache.find(key);
  if (known != cache.end()) {
    found = &known->second;
    return static_cast<K_status>(0);
  }
  Code code = {};
  const int sm = 10 * device.major + device.minor;
  CUresult refused = CUDA_SUCCESS;
  bool done = false;
  for (int ptx = 0; ptx < 2 && !done; ++ptx)
    for (int i = 0; i < image_count && !done; ++i) {
      const Image &image = images[i];
      const bool fits = image.sm == sm || (!image.specific && image.sm < sm && (image.ptx || image.sm / 10 == sm / 10));
      if (image.ptx != (ptx == 1) || image.code != number || !fits || macros != image.macros) continue;
      std::vector<std::string> symbols;
      for (const char *const *symbol = image.symbols; *symbol; ++symbol) symbols.push_back(*symbol);
      code = {};
      const CUresult got = load(code, image.data, symbols);
      done = got == CUDA_SUCCESS;
      if (!done) refused = got;
    }
  if (!done) {
    code = {};
    const K_status status = compile(code, source, macros, options, kernels, device);
    if (status != static_cast<K_status>(0)) {
      if (refused != CUDA_SUCCESS) message() = std::string("the driver refuses the embedded code: ") + text_of(refused) + "; it may be too old for it. Then: " + message();
      return status;
    }
  }
  found = &cache.emplace(key, code).first->second;
  return static_cast<K_status>(0);
}

/* Launches one kernel; what CUDA would refuse is an error. */
inline K_status launch(const Code &code, int number, const char *name, const K_launch_extents &extents, bool cooperative, K_stream stream, void **values) {
  const CUfunction function = code.functions[static_cast<size_t>(number)];
  if (!extents.runs)
    return failed(CUDA_ERROR_INVALID_VALUE, "%s: grid %lld x %lld x %lld, block %lld x %lld x %lld or %lld bytes of shared memory are beyond CUDA's or the device's limits",
        name, extents.grid[0], extents.grid[1], extents.grid[2], extents.block[0], extents.block[1], extents.block[2], extents.shared_bytes);
  const unsigned g[3] = {static_cast<unsigned>(extents.grid[0]), static_cast<unsigned>(extents.grid[1]), static_cast<unsigned>(extents.grid[2])};
  const unsigned b[3] = {static_cast<unsigned>(extents.block[0]), static_cast<unsigned>(extents.block[1]), static_cast<unsigned>(extents.block[2])};
  const unsigned shared = static_cast<unsigned>(extents.shared_bytes);
  CUresult got = shared > 48 * 1024 ? driver().set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)) : CUDA_SUCCESS;
  if (got == CUDA_SUCCESS)
    got = cooperative ? driver().cooperative(function, g[0], g[1], g[2], b[0], b[1], b[2], shared, stream, values)
                      : driver().launch(function, g[0], g[1], g[2], b[0], b[1], b[2], shared, stream, values, nullptr);
  if (got != CUDA_SUCCESS) return failed(got, "%s: the launch fails: %s", name, text_of(got));
  return static_cast<K_status>(0);
}

inline K_status pointer(const char *name, const void *value) {
  if (!value) return failed(CUDA_ERROR_INVALID_VALUE, "%s is null", name);
  if (reinterpret_cast<uintptr_t>(value) % 16) return failed(CUDA_ERROR_MISALIGNED_ADDRESS, "%s is not aligned to 16 bytes", name);
  return static_cast<K_status>(0);
}

} /* namespace K_launcher */
