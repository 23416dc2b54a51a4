// Package document reads YAML, of which JSON is a part, into values that know
// their lines, and writes values as YAML and JSON.
//
// What is read comes from outside: texts are bounded (Limits), reading takes time
// that grows with the text's length whatever is in it, and every mistake is told
// with its line. What the keys mean is for the importers to say: plan, deploy and
// lab for their files, cmd/weft for those of its commands.
package document

import (
	"fmt"
	"strconv"
)

// Kind says what a value is.
type Kind int

// The kinds of values.
const (
	Broken  Kind = iota // cannot be read, which is reported
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
	Line    int    // from 1; 0 of what was not read
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

// Get returns what stands for a key of a mapping, false if it is not there.
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

// Mistake is something wrong in a text; line 0 is of no line.
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
