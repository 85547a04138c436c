// Package trainerbench trains on a data set and reports speed, quality and ε: it makes the split of each evaluation
// protocol, runs the trainers in the table of trainers.go on it, and compares them with predictors that learn nothing.
package trainerbench
