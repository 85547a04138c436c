// Package trainer holds what all trainers share: the Model they produce, with
// prediction, recommendation, new users and files, and the reports of progress
// and memory. Each algorithm is a sub-package with a Config and a Train function.
package trainer
