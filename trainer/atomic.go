package trainer

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// writeAtomically makes a file appear under its name only when it is complete: it is
// written under another name in the same folder, then renamed. After an error neither name is
// left behind, and a file that had the name before is as it was. mode is subject to the umask.
func writeAtomically(path string, mode os.FileMode, write func(io.Writer) error) (err error) {
	folder, name := filepath.Split(path)
	tmp, err := os.OpenFile(fmt.Sprintf("%s.%s.%016x.tmp", folder, name, rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close() // after a failure, or a second time: its error says nothing new
			os.Remove(tmp.Name())
		}
	}()
	w := bufio.NewWriterSize(tmp, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
