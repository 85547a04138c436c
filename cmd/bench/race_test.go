//go:build race

package main

// raceDetector is whether the program under test watches for data races as this test does.
const raceDetector = true
