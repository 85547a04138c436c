package dataset

import "strings"

// setKey is the form in which names of data sets are compared: lower case, without hyphens and underscores.
func setKey(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// setName is the name by which a set is shown, given its key.
func setName(key string) string {
	if key == "mllatestsmall" {
		return "mllatest-small"
	}
	return key
}
