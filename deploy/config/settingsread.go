package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/document"
)

// read stores a value in a place of a configuration, and reports everything
// that has no place there or has another type. Absent keys of structures keep
// their values; lists and maps are replaced.
func (c *change) read(name string, v document.Value, to reflect.Value) []error {
	for to.Kind() == reflect.Pointer {
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		to = to.Elem()
	}
	keys, isStruct := structKeys(to.Type())
	itself := readsItself(to.Type())
	wrong := func(form string, args ...any) []error {
		return []error{fmt.Errorf("%s: %s: %w", c.place(v.Line), name, fmt.Errorf(form, args...))}
	}
	switch {
	case v.Kind == document.Null:
		return wrong("no value; give one, or take the key out")
	case v.Kind == document.Mapping && isStruct:
		return c.readStruct(name, v, to, keys)
	case v.Kind == document.Mapping && to.Kind() == reflect.Map && !itself:
		return c.readMap(name, v, to)
	case v.Kind == document.List && (to.Kind() == reflect.Slice || to.Kind() == reflect.Array) && !itself:
		return c.readList(name, v, to)
	case v.Kind == document.Mapping, v.Kind == document.List:
		return wrong("want %s, not %s", wanted(to.Type()), v.Kind)
	case isStruct:
		return wrong("want keys with values; allowed: %s", allowed(keys))
	case itself:
		if err := to.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v.Text)); err != nil {
			return wrong("%w", err)
		}
	case !readScalar(v, to):
		return wrong("want %s, not %q", wanted(to.Type()), v.Text)
	}
	return nil
}

func (c *change) readStruct(name string, v document.Value, to reflect.Value, keys map[string]reflect.StructField) (errs []error) {
	for _, e := range v.Entries {
		field, ok := keys[e.Key]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: unknown key %s.%s; allowed: %s%s", c.place(e.Line), name, e.Key, allowed(keys), meantKey(e.Key, keys)))
			continue
		}
		errs = append(errs, c.read(name+"."+e.Key, e.Value, to.FieldByIndex(field.Index))...)
	}
	return errs
}

func (c *change) readMap(name string, v document.Value, to reflect.Value) (errs []error) {
	t := to.Type()
	to.Set(reflect.MakeMapWithSize(t, len(v.Entries)))
	for _, e := range v.Entries {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if bad := c.read(name, document.Value{Kind: document.Word, Line: e.Line, Text: e.Key}, key); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		errs = append(errs, c.read(name+"."+e.Key, e.Value, value)...)
		to.SetMapIndex(key, value)
	}
	return errs
}

func (c *change) readList(name string, v document.Value, to reflect.Value) (errs []error) {
	if to.Kind() == reflect.Slice {
		to.Set(reflect.MakeSlice(to.Type(), len(v.Items), len(v.Items)))
	} else if len(v.Items) != to.Len() {
		return []error{fmt.Errorf("%s: %s: want a list of %d, not %d", c.place(v.Line), name, to.Len(), len(v.Items))}
	}
	for i, item := range v.Items {
		errs = append(errs, c.read(fmt.Sprintf("%s[%d]", name, i), item, to.Index(i))...)
	}
	return errs
}

// readScalar stores a number, truth value or text in a place; false if the
// value does not fit.
func readScalar(v document.Value, to reflect.Value) bool {
	if to.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(v.Text)
		if err == nil {
			to.SetInt(int64(d))
		}
		return err == nil
	}
	digits := strings.ReplaceAll(v.Text, "_", "")
	switch to.Kind() {
	case reflect.String:
		to.SetString(v.Text)
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(v.Text))
		if err != nil || len(v.Text) < len("true") { // 1, t
			return false
		}
		to.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(whole(digits), 0, 64)
		if err != nil || to.OverflowInt(n) {
			return false
		}
		to.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(strings.TrimPrefix(whole(digits), "+"), 0, 64)
		if err != nil || to.OverflowUint(n) {
			return false
		}
		to.SetUint(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(digits, 64)
		if n, bad := strconv.ParseInt(digits, 0, 64); err != nil && bad == nil { // 0x10
			f, err = float64(n), nil
		}
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || to.OverflowFloat(f) {
			return false
		}
		to.SetFloat(f)
	default:
		return false
	}
	return true
}

// whole returns a whole number such as 1e6 or 3.0 in digits, and any other text
// unchanged.
func whole(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return text
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}
