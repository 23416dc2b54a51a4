package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
)

// KeyChange is one difference between two configurations of a service.
type KeyChange struct {
	Path     string // of the key among the keys of its type, as rules.action
	Key      string // with the element of a list or map, as rules[web].action
	old, new string // as YAML on one line; empty if there is none

	before, after reflect.Value // not valid if there is none
}

// shownMost is the longest value that is shown of a change, in octets.
const shownMost = 400

// ChangesOf returns how the second of two configurations of one type differs
// from the first, in the order of the type's fields.
func ChangesOf(old, new any) []KeyChange {
	if old == nil || new == nil || reflect.TypeOf(old) != reflect.TypeOf(new) {
		return nil
	}
	d := &configDiffer{}
	d.values("", "", reflect.ValueOf(old), reflect.ValueOf(new))
	return d.changes
}

type configDiffer struct{ changes []KeyChange }

func (d *configDiffer) add(path, key string, old, new reflect.Value) {
	c := KeyChange{Path: path, Key: key, old: shown(path, old), new: shown(path, new), before: old, after: new}
	d.changes = append(d.changes, c)
}

// values compares two values of one type; one that is not valid is not there.
func (d *configDiffer) values(path, key string, a, b reflect.Value) {
	for a.IsValid() && b.IsValid() && a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if !a.IsValid() || !b.IsValid() {
		d.add(path, key, a, b)
		return
	}
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	t := a.Type()
	keys, isStruct := structKeys(t)
	switch {
	case isStruct && t.Kind() == reflect.Struct:
		for _, name := range fieldOrder(keys) {
			at := keys[name].Index
			d.values(joined(path, name), joined(key, name), a.FieldByIndex(at), b.FieldByIndex(at))
		}
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		for _, k := range mapKeys(a, b) {
			d.values(path, key+"["+k.String()+"]", a.MapIndex(k), b.MapIndex(k))
		}
	case t.Kind() == reflect.Slice && d.named(path, key, a, b):
	default:
		d.add(path, key, a, b)
	}
}

// named compares two lists of things that have names, and reports whether they
// are such lists.
func (d *configDiffer) named(path, key string, a, b reflect.Value) bool {
	before, ok := namesIn(a)
	after, ok2 := namesIn(b)
	if !ok || !ok2 {
		return false
	}
	element := func(list reflect.Value, names []string, name string) reflect.Value {
		if i := slices.Index(names, name); i >= 0 {
			return list.Index(i)
		}
		return reflect.Value{}
	}
	for _, name := range before {
		d.values(path, key+"["+name+"]", element(a, before, name), element(b, after, name))
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			d.values(path, key+"["+name+"]", reflect.Value{}, element(b, after, name))
		}
	}
	stay := func(names, others []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(others, n) })
	}
	if x, y := stay(before, after), stay(after, before); !slices.Equal(x, y) {
		d.changes = append(d.changes, KeyChange{Path: path, Key: key, old: Shorten("order " + strings.Join(x, ", ")), new: Shorten("order " + strings.Join(y, ", "))})
	}
	return true
}

// namesMost is the longest list whose elements are compared by name.
const namesMost = 5000

// namesIn returns the names of a list's elements, false if they have none, or
// not each its own.
func namesIn(list reflect.Value) (names []string, ok bool) {
	element := list.Type().Elem()
	keys, isStruct := structKeys(element)
	if !isStruct || element.Kind() != reflect.Struct || list.Len() > namesMost {
		return nil, false
	}
	var by []int
	for _, key := range []string{"name", "id"} {
		if f, ok := keys[key]; ok && f.Type.Kind() == reflect.String {
			by = f.Index
			break
		}
	}
	if by == nil {
		return nil, false
	}
	seen := map[string]bool{}
	for i := range list.Len() {
		name := list.Index(i).FieldByIndex(by).String()
		if name == "" || seen[name] {
			return nil, false
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, true
}

// fieldOrder returns keys in the order of their fields.
func fieldOrder(keys map[string]reflect.StructField) []string {
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(keys[a].Index, keys[b].Index) })
	return names
}

func mapKeys(a, b reflect.Value) []reflect.Value {
	keys := slices.Concat(a.MapKeys(), b.MapKeys())
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(keys, func(a, b reflect.Value) bool { return a.String() == b.String() })
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shown returns a value as YAML on one line, without secrets.
func shown(path string, v reflect.Value) string {
	switch {
	case !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil():
		return ""
	case plan.IsSecret(path):
		if v.Kind() == reflect.String && v.Len() == 0 {
			return ""
		}
		return plan.Secret
	}
	text, err := written(v).OneLine()
	if err != nil {
		return fmt.Sprint(v.Interface())
	}
	return Shorten(strings.Join(strings.Fields(text), " "))
}

// written returns a value of a configuration as it is written in a document.
func written(v reflect.Value) document.Value {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	keys, isStruct := structKeys(v.Type())
	switch x := v.Interface().(type) {
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			return document.Value{Kind: document.Word, Text: string(text)}
		}
	case time.Duration:
		return document.Value{Kind: document.Word, Text: x.String()}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return document.Value{Kind: document.Null}
	case reflect.Struct:
		m := document.Value{Kind: document.Mapping}
		if isStruct {
			for _, name := range fieldOrder(keys) {
				m.Entries = append(m.Entries, document.Entry{Key: name, Value: written(v.FieldByIndex(keys[name].Index))})
			}
		}
		return m
	case reflect.Map:
		m := document.Value{Kind: document.Mapping}
		for it := v.MapRange(); it.Next(); {
			m.Entries = append(m.Entries, document.Entry{Key: written(it.Key()).Text, Value: written(it.Value())})
		}
		return m.Sorted()
	case reflect.Slice, reflect.Array:
		l := document.Value{Kind: document.List}
		for i := range v.Len() {
			l.Items = append(l.Items, written(v.Index(i)))
		}
		return l
	case reflect.String:
		return document.Value{Kind: document.Word, Text: v.String()}
	}
	return document.Value{Kind: document.Plain, Text: fmt.Sprint(v.Interface())} // a number or a truth value
}

// Shorten cuts a text that is too long to be shown.
func Shorten(s string) string {
	if len(s) <= shownMost {
		return s
	}
	return fmt.Sprintf("%s… (%d octets)", strings.ToValidUTF8(s[:shownMost], ""), len(s))
}

// TakenLive reports whether a running service takes over all changes.
func TakenLive(spec *weft.Spec, changes []KeyChange) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c KeyChange) bool { return !isLive(spec, c.Path) })
}

// isLive reports whether a running service takes over changes of a key.
func isLive(spec *weft.Spec, path string) bool {
	return slices.ContainsFunc(spec.Live, func(live string) bool {
		return live == "*" || path == live || strings.HasPrefix(path, live+".")
	})
}

// KeysOf returns the keys of changes.
func KeysOf(changes []KeyChange) (keys []string) {
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys
}
