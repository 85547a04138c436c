// Package kernelbench measures the kernels on the sizes that training meets: every tier of the machine, and a pure-Go
// library where one does the same job, one after the other in each of several rounds, with the limit of the hardware
// measured in the same round. Shares and ratios are formed within a round and only then summarised by their medians, so
// that a neighbour who takes the machine for a moment disturbs a round and not a comparison.
package kernelbench
