//go:build !(amd64 && gc && !noasm)

package cpu

// detect: this build has no assembly, so there is nothing above pure Go.
func detect() Tier { return Generic }
