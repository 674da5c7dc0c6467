// A member of a kernel's type that only the host can run.
struct Text {
  char *data;
  int length;
  void set(const char *from) { length = strlen(from); }
};
__global__ void shorten(Text *texts, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) texts[i].length -= 1;
}
void run(Text *texts, int count) { shorten<<<(count + 63) / 64, 64>>>(texts, count); }
