package dataset

import mmap "github.com/edsrzf/mmap-go"

// mapping is a file mapped read-only into memory.
type mapping struct{ data mmap.MMap }

func (m *mapping) unmap() error { return m.data.Unmap() }
