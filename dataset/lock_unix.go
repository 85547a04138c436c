//go:build unix && !solaris && !illumos && !aix

package dataset

import (
	"os"
	"syscall"
)

// lockFile takes the file for this process until it is closed, and tells whether it could.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
