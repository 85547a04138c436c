package privacy

import "fmt"

// A Unit is the neighbouring relation a guarantee is about: what two data sets
// may differ in and still be hard to tell apart.
type Unit uint8

const (
	// NoUnit is for trainers that prove nothing.
	NoUnit Unit = iota
	// UserLevel protects a whole user: neighbours differ by adding or removing
	// one user with all of her ratings.
	UserLevel
	// RatingValue protects the value of one rating: neighbours differ in one
	// rating's value, while who rated what is public.
	RatingValue
)

// String gives the unit's name as it stands in files.
func (u Unit) String() string {
	switch u {
	case UserLevel:
		return "user add/remove"
	case RatingValue:
		return "rating value"
	case NoUnit:
		return "none"
	}
	return fmt.Sprintf("unit %d", uint8(u))
}

// Describe says in a sentence who is protected from what.
func (u Unit) Describe() string {
	switch u {
	case UserLevel:
		return "one user with all of her ratings: what is released hardly depends on whether she took part at all (neighbouring data sets differ by adding or removing one user)"
	case RatingValue:
		return "the value of one rating: what is released hardly depends on it, but who rated which item is treated as public (neighbouring data sets differ in one rating's value)"
	}
	return "nobody: no neighbouring relation is defined for this trainer"
}

// MarshalText writes the name that String gives.
func (u Unit) MarshalText() ([]byte, error) {
	if u > RatingValue {
		return nil, fmt.Errorf("privacy: unknown unit of protection %d", uint8(u))
	}
	return []byte(u.String()), nil
}

// UnmarshalText reads a name written by MarshalText.
func (u *Unit) UnmarshalText(text []byte) error {
	for candidate := NoUnit; candidate <= RatingValue; candidate++ {
		if candidate.String() == string(text) {
			*u = candidate
			return nil
		}
	}
	return fmt.Errorf("privacy: unknown unit of protection %q: it is %q, %q or %q", text, NoUnit, UserLevel, RatingValue)
}
