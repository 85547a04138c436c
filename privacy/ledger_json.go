package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ledgerSchema is the version of the JSON below.
const ledgerSchema = 1

// maxLedgerReleases bounds the entries of a decoded ledger.
const maxLedgerReleases = 1 << 16

// ledgerFile is the JSON form of a Ledger. It holds no ε: that is computed
// from the releases whenever it is asked for.
type ledgerFile struct {
	Schema   int       `json:"schema"`
	Unit     Unit      `json:"unit"`
	Delta    float64   `json:"delta"`
	Source   Source    `json:"source"`
	Sealed   bool      `json:"sealed"`
	Releases []Release `json:"releases"`
}

// MarshalJSON writes the ledger as a JSON object with a schema version.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	releases := l.releases
	if releases == nil {
		releases = []Release{}
	}
	return json.Marshal(ledgerFile{ledgerSchema, l.unit, l.delta, l.source, l.sealed, releases})
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses a ledger that Record
// could not have produced: unknown fields or schema, an invalid unit, δ,
// source or release. On error the ledger is unchanged.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file ledgerFile
	if err := decoder.Decode(&file); err != nil {
		return fmt.Errorf("privacy: the ledger cannot be read: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("privacy: the ledger cannot be read: something follows its closing brace")
	}
	if file.Schema != ledgerSchema {
		return fmt.Errorf("privacy: the ledger has schema %d, this version reads %d", file.Schema, ledgerSchema)
	}
	if len(file.Releases) > maxLedgerReleases {
		return fmt.Errorf("privacy: the ledger lists %d releases, more than the %d a file may hold", len(file.Releases), maxLedgerReleases)
	}
	read := Ledger{unit: file.Unit, delta: file.Delta, source: file.Source, releases: file.Releases, sealed: file.Sealed}
	if len(read.releases) == 0 {
		read.releases = nil
	}
	if err := read.validate(); err != nil {
		return err
	}
	*l = read
	return nil
}
