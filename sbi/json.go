package sbi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Unknown are the members of a JSON object that this package has no name for.
// They are kept, so that what is passed on says all that it said.
type Unknown map[string]json.RawMessage

// decode reads a JSON object into the struct that v points to, whose field of
// type Unknown takes the members without a field. Names must be spelt exactly.
// The error is a ProblemDetails that names the wrong member by a JSON pointer.
func decode(b []byte, v any) error {
	if err := (&decoder{}).value(b, reflect.ValueOf(v).Elem(), ""); err != nil {
		return err // an untyped nil if it is nil
	}
	return nil
}

// decoder decodes a JSON text. A lenient one leaves out the members that it cannot
// read, and lists them in odd.
type decoder struct {
	lenient bool
	odd     []InvalidParam // what could not be read
	cased   []string       // members whose names differ in case only from those of fields
}

// skip lists a member that could not be read. A decoder that is not lenient fails.
func (d *decoder) skip(at, want string, err error) *ProblemDetails {
	if !d.lenient || at == "" {
		return malformed(at, want, err)
	}
	d.odd = append(d.odd, InvalidParam{Param: at, Reason: want})
	return nil
}

func (d *decoder) value(b []byte, v reflect.Value, at string) *ProblemDetails {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		return nil // as if it were absent
	}
	list := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
	if text := string(bytes.TrimSpace(b)); d.lenient && list && (text == "[]" || text == "{}") {
		return nil // nothing is in it, whatever it should be
	}
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(b, v.Elem(), at)
	case v.Kind() == reflect.Struct && unknownOf(v).IsValid():
		members := Unknown{}
		if err := json.Unmarshal(b, &members); err != nil {
			return d.skip(at, "want an object", err)
		}
		for i, name := range namesOf(v.Type()) {
			raw, ok := members[name]
			if name == "" || !ok {
				continue
			}
			delete(members, name)
			if err := d.value(raw, v.Field(i), at+"/"+name); err != nil {
				return err
			}
		}
		if len(members) > 0 {
			unknownOf(v).Set(reflect.ValueOf(members))
			d.compare(members, v.Type(), at)
		}
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]():
		var items []json.RawMessage
		if err := json.Unmarshal(b, &items); err != nil {
			return d.skip(at, "want an array", err)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, raw := range items {
			if err := d.value(raw, v.Index(i), at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Map:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			return d.skip(at, "want an object", err)
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			item := reflect.New(v.Type().Elem()).Elem()
			if err := d.value(members[name], item, at+"/"+pointerToken(name)); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(name), item)
		}
	default:
		if err := json.Unmarshal(b, v.Addr().Interface()); err != nil {
			return d.skip(at, "want "+wanted(v.Type()), err)
		}
	}
	return nil
}

// compare lists the members whose names differ in case only from those of a struct.
func (d *decoder) compare(members Unknown, t reflect.Type, at string) {
	if !d.lenient {
		return
	}
	for name := range members {
		if slices.ContainsFunc(namesOf(t), func(of string) bool { return of != "" && fold(of) == fold(name) }) {
			d.cased = append(d.cased, at+"/"+pointerToken(name))
		}
	}
}

// encode returns the JSON object of a struct: its fields that are set, or all of
// those whose tag does not say omitzero, then what its field of type Unknown has.
func encode(s any) ([]byte, error) {
	v := reflect.ValueOf(s)
	b := []byte{'{'}
	put := func(name string, value any) error {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(name) // a string
		b = append(append(append(b, key...), ':'), raw...)
		return nil
	}
	for i, name := range namesOf(v.Type()) {
		always := !strings.HasSuffix(v.Type().Field(i).Tag.Get("json"), ",omitzero")
		if name == "" || !always && v.Field(i).IsZero() {
			continue
		}
		if err := put(name, v.Field(i).Interface()); err != nil {
			return nil, err
		}
	}
	unknown := unknownOf(v).Interface().(Unknown)
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if err := put(name, unknown[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// namesOf returns the member of each field of a struct; "" for none.
func namesOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// unknownOf returns the field of a struct that keeps unknown members.
func unknownOf(v reflect.Value) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Type == reflect.TypeFor[Unknown]() {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// wanted says in JSON's words what a Go type is.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Uint8, reflect.Uint16:
		return "an integer"
	}
	return "a value of another type"
}

// pointerToken escapes a name for a JSON pointer (RFC 6901).
func pointerToken(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
