// Package document reads YAML, of which JSON is a part, into values that know
// their lines, and writes values as YAML and JSON.
//
// The input is untrusted: texts are bounded (Limits), the time to read one is
// linear in its length whatever its content, and every mistake is reported with
// its line. The importers define the meaning of keys: plan, deploy and lab for
// their files, cmd/weft for those of its commands.
package document

import (
	"fmt"
	"strconv"
)

// Kind is the kind of a value.
type Kind int

// The kinds of values.
const (
	Broken  Kind = iota // unreadable, which is reported as a mistake
	Null                //
	Plain               // a number or a truth value, as it is written
	Word                // a string
	List                //
	Mapping             //
)

func (k Kind) String() string {
	return [...]string{"what cannot be read", "nothing", "a value", "text", "a list", "keys with values"}[k]
}

// Value is one value of a document. The zero Value is Broken.
type Value struct {
	Kind    Kind
	Line    int    // from 1; 0 if the value was not read
	Text    string // of a plain value or text
	Items   []Value
	Entries []Entry
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   string
	Line  int
	Value Value
}

// Get returns the value of a key of a mapping; false if it is absent.
func (v Value) Get(key string) (Value, bool) {
	for _, e := range v.Entries {
		if e.Key == key {
			return e.Value, true
		}
	}
	return Value{}, false
}

// Scalar reports whether the value is a number, a truth value or a text.
func (v Value) Scalar() bool { return v.Kind == Plain || v.Kind == Word }

// Short describes a value in a message.
func (v Value) Short() string {
	if v.Scalar() {
		return strconv.Quote(v.Text)
	}
	return v.Kind.String()
}

// Mistake is a mistake in a text; line 0 stands for no line.
type Mistake struct {
	Line int
	Text string
}

// In returns the mistake as an error of a file.
func (m Mistake) In(file string) error {
	if m.Line == 0 {
		return fmt.Errorf("%s: %s", file, m.Text)
	}
	return fmt.Errorf("%s:%d: %s", file, m.Line, m.Text)
}
