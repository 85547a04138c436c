//go:build !unix || solaris || illumos || aix

package dataset

import "os"

// lockFile cannot lock here: two downloads of one archive at a time spoil each other, which the digest reveals.
func lockFile(*os.File) bool { return true }
