package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSON is the deepest nesting that FromJSON reads; its input comes from a
// program.
const maxJSON = 1000

// FromJSON reads JSON written by a program: without bounds and lines. Keys keep
// their order, numbers their digits.
func FromJSON(text []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := fromJSON(d, 0)
	if err != nil {
		return Value{}, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Value{}, errors.New("read JSON: more than one value")
	}
	return v, nil
}

func fromJSON(d *json.Decoder, depth int) (Value, error) {
	token, err := d.Token()
	if err != nil {
		return Value{}, err
	}
	switch t := token.(type) {
	case nil:
		return Value{Kind: Null}, nil
	case bool:
		return Value{Kind: Plain, Text: fmt.Sprint(t)}, nil
	case json.Number:
		return Value{Kind: Plain, Text: t.String()}, nil
	case string:
		return Value{Kind: Word, Text: t}, nil
	}
	if depth == maxJSON {
		return Value{}, fmt.Errorf("nested deeper than %d levels", maxJSON)
	}
	v := Value{Kind: List}
	if token == json.Delim('{') {
		v.Kind = Mapping
	}
	for d.More() {
		var e Entry
		if v.Kind == Mapping {
			key, err := d.Token()
			if err != nil {
				return v, err
			}
			e.Key, _ = key.(string) // the decoder takes nothing else
		}
		if e.Value, err = fromJSON(d, depth+1); err != nil {
			return v, err
		}
		if v.Kind == Mapping {
			v.Entries = append(v.Entries, e)
		} else {
			v.Items = append(v.Items, e.Value)
		}
	}
	_, err = d.Token() // the end of it
	return v, err
}

// JSON returns the value as JSON on one line; numbers in a form that JSON lacks
// become strings.
func (v Value) JSON() []byte {
	var b bytes.Buffer
	v.json(&b)
	return b.Bytes()
}

func (v Value) json(b *bytes.Buffer) {
	text := func(s string) {
		raw, _ := json.Marshal(s) // a string always can be
		b.Write(raw)
	}
	switch v.Kind {
	case Null:
		b.WriteString("null")
	case Plain:
		if json.Valid([]byte(v.Text)) {
			b.WriteString(v.Text)
		} else {
			text(v.Text)
		}
	case Word:
		text(v.Text)
	case List:
		b.WriteString("[")
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(",")
			}
			item.json(b)
		}
		b.WriteString("]")
	case Mapping:
		b.WriteString("{")
		for i, e := range v.Entries {
			if i > 0 {
				b.WriteString(",")
			}
			text(e.Key)
			b.WriteString(":")
			e.Value.json(b)
		}
		b.WriteString("}")
	}
}
