package kernels

// fma32 returns x·y + z rounded once to float32: the compiler turns the
// expression into one FMADD on this architecture, and TestFMA32 holds it to that.
func fma32(x, y, z float32) float32 { return x*y + z }
