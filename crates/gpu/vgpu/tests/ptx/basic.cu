extern "C" __global__ void saxpy(const float* x, float* y, float a, int n){
  int i = blockIdx.x*blockDim.x+threadIdx.x;
  if(i<n) y[i]=a*x[i]+y[i];
}
extern "C" __global__ void reduce(const float* x, float* out, int n){
  __shared__ float s[256];
  float v=0; for(int i=threadIdx.x;i<n;i+=blockDim.x) v+=x[i];
  s[threadIdx.x]=v;
  __syncthreads();
  for(int o=128;o>0;o>>=1){ if(threadIdx.x<o) s[threadIdx.x]+=s[threadIdx.x+o]; __syncthreads(); }
  if(threadIdx.x==0) out[0]=s[0];
}
extern "C" __global__ void reduce_bad(const float* x, float* out, int n){
  __shared__ float s[256];
  float v=0; for(int i=threadIdx.x;i<n;i+=blockDim.x) v+=x[i];
  s[threadIdx.x]=v;
  for(int o=128;o>0;o>>=1){ if(threadIdx.x<o) s[threadIdx.x]+=s[threadIdx.x+o]; __syncthreads(); }
  if(threadIdx.x==0) out[0]=s[0];
}
extern "C" __global__ void oob(float* y, int n){
  int i = blockIdx.x*blockDim.x+threadIdx.x;
  y[i]=1.f;
}
extern "C" __global__ void divbar(float* y, int n){
  if(threadIdx.x&1) { y[threadIdx.x]=1.f; __syncthreads(); }
  y[threadIdx.x]=2.f;
}
__device__ unsigned ticket;
extern "C" __global__ void lastblock(const float* x, float* part, float* out, int n){
  __shared__ float s[128]; __shared__ bool last;
  int i = blockIdx.x*128+threadIdx.x;
  s[threadIdx.x]= i<n? x[i]:0.f; __syncthreads();
  for(int o=64;o>0;o>>=1){ if(threadIdx.x<o) s[threadIdx.x]+=s[threadIdx.x+o]; __syncthreads(); }
  if(threadIdx.x==0){ part[blockIdx.x]=s[0]; __threadfence(); unsigned t=atomicAdd(&ticket,1u); last = t==gridDim.x-1; }
  __syncthreads();
  if(last){ float v=0; for(int j=threadIdx.x;j<gridDim.x;j+=128) v+=part[j]; s[threadIdx.x]=v; __syncthreads();
   for(int o=64;o>0;o>>=1){ if(threadIdx.x<o) s[threadIdx.x]+=s[threadIdx.x+o]; __syncthreads(); }
   if(threadIdx.x==0) {out[0]=s[0]; ticket=0;} }
}
extern "C" __global__ void lastblock_bad(const float* x, float* part, float* out, int n){
  __shared__ bool last;
  if(threadIdx.x==0){ part[blockIdx.x]=x[blockIdx.x]; unsigned t=atomicAdd(&ticket,1u); last = t==gridDim.x-1; }
  __syncthreads();
  if(last && threadIdx.x==0){ float v=0; for(int j=0;j<gridDim.x;j++) v+=part[j]; out[0]=v; ticket=0; }
}
extern "C" __global__ void spinlock(int* lock, int* count){
  bool done=false;
  while(!done){ if(atomicCAS(lock,0,1)==0){ __threadfence(); *(volatile int*)count = *(volatile int*)count+1; __threadfence(); atomicExch(lock,0); done=true; } }
}
extern "C" __global__ void endless(int* p){ while(*(volatile int*)p==0); }
extern "C" __global__ void uninit(float* y){ __shared__ float s[64]; if(threadIdx.x<32) s[threadIdx.x]=1.f; __syncthreads(); y[threadIdx.x]=s[threadIdx.x]; }
