/* A program with an embedded image and without a shared runtime library. */
__attribute__((section(".nv_fatbin"), used)) static char image[16] = {1};
int main(void) { return image[0]; }
