// Settings of the project's build.
#pragma once
#define PARTS_FAST 1
