package trainerbench

import (
	"fmt"
	"slices"
	"strings"
)

// A Trainer is one line of the list of trainers: an algorithm with its configuration for one protocol.
type Trainer struct {
	Name     string
	Protocol Protocol
	Private  bool // its jobs are asked for once per ε
	// jobs lists its runs for data of that many users and one ε, one for each rank; what all trainers have in common
	// is filled in by the caller.
	jobs func(p Params, users int, epsilon float64) []job
}

// Trainers lists what bench can train. A new trainer adds one line per protocol.
var Trainers = []Trainer{
	{"als", Speed, false, alsSpeed},
	{"dpals", Speed, true, dpalsSpeed},
	{"als", Explicit, false, alsExplicit},
	{"als", Implicit, false, alsImplicit},
	{"dpals", Explicit, true, dpalsExplicit},
	{"dpals", Implicit, true, dpalsImplicit},
}

// Names lists the trainers, without repetition, in the order of the table.
func Names() []string {
	var names []string
	for _, t := range Trainers {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Select reads a comma-separated list of trainer names, "all" or "none", and of protocols, "all" included.
func Select(trainers, protocols string) ([]Trainer, error) {
	names, err := words(trainers, Names(), "trainer")
	if err != nil {
		return nil, err
	}
	kinds, err := words(protocols, []string{string(Speed), string(Explicit), string(Implicit)}, "protocol")
	if err != nil {
		return nil, err
	}
	var list []Trainer
	for _, t := range Trainers {
		if slices.Contains(names, t.Name) && slices.Contains(kinds, string(t.Protocol)) {
			list = append(list, t)
		}
	}
	return list, nil
}

func words(list string, known []string, what string) ([]string, error) {
	switch strings.ToLower(strings.TrimSpace(list)) {
	case "all":
		return known, nil
	case "none", "":
		return nil, nil
	}
	var chosen []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		if !slices.Contains(known, word) {
			return nil, fmt.Errorf("unknown %s %q: choose from %s, all or none", what, word, strings.Join(known, ", "))
		}
		chosen = append(chosen, word)
	}
	return chosen, nil
}
