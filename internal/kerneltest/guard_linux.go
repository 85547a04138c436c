package kerneltest

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AtEnd returns n zero float32 whose last one is followed by an unmapped page, so
// that a kernel reading or writing past the end faults.
func AtEnd(t testing.TB, n int) []float32 {
	p := guarded(t, 4*n)
	return floats(p[len(p)-4*n:], n)
}

// AtStart returns n zero float32 whose first one is preceded by an unmapped page.
func AtStart(t testing.TB, n int) []float32 { return floats(guarded(t, 4*n), n) }

// AtEndInt32 is AtEnd for row indices.
func AtEndInt32(t testing.TB, n int) []int32 {
	f := AtEnd(t, n)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(&f[0])), n)
}

func floats(b []byte, n int) []float32 {
	if n == 0 {
		return []float32{}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n)
}

// guarded maps whole pages for size bytes between two inaccessible pages and
// returns the pages between.
func guarded(t testing.TB, size int) []byte {
	page := unix.Getpagesize()
	body := max(1, (size+page-1)/page) * page
	all, err := unix.Mmap(-1, 0, body+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:page], all[page+body:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : page+body]
}
