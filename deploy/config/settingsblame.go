package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
)

// blame adds to the mistakes that Validate found the lines of their keys, as
// far as they are known.
func blame(service string, changes []change, err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range all.Unwrap() {
			errs = append(errs, blame(service, changes, e))
		}
		return errors.Join(errs...)
	}
	path := keyOf(service, err)
	if len(path) == 0 {
		return fmt.Errorf("service %s: %w", service, err)
	}
	for _, c := range slices.Backward(changes) {
		if len(c.path) > 0 {
			if c.path[0] == path[0] {
				return fmt.Errorf("%s: service %s: %w", c.source, service, err)
			}
			continue
		}
		if at := find(c.value, path); at > 0 {
			return fmt.Errorf("%s: service %s: %w", c.place(at), service, err)
		}
	}
	return fmt.Errorf("service %s: %w", service, err)
}

// maxInvalid is the most mistakes that validate reports for one service.
const maxInvalid = 100

// validate returns all mistakes that a service finds in a configuration, one
// after the other: it resets the key of each to its default, so that the next
// one is found. A configuration with mistakes must not be used.
func validate(spec *weft.Spec, changes []change, config reflect.Value) (errs []error) {
	for range maxInvalid {
		err := config.Interface().(weft.Config).Validate()
		if err == nil {
			break
		}
		errs = append(errs, blame(spec.Name, changes, err))
		if !restore(spec, config, err) {
			break
		}
	}
	return errs
}

// restore resets the keys that errors begin with to their defaults, and reports
// whether that changed any.
func restore(spec *weft.Spec, config reflect.Value, err error) (changed bool) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			changed = restore(spec, config, e) || changed
		}
		return changed
	}
	to, from := config.Elem(), deepCopy(reflect.ValueOf(spec.Config)).Elem()
	known := false
	for _, step := range keyOf(spec.Name, err) {
		for to.Kind() == reflect.Pointer && !to.IsNil() && !from.IsNil() {
			to, from = to.Elem(), from.Elem()
		}
		if to.Kind() == reflect.Pointer {
			break
		}
		keys, _ := structKeys(to.Type())
		field, ok := keys[step]
		if !ok {
			break
		}
		to, from, known = to.FieldByIndex(field.Index), from.FieldByIndex(field.Index), true
	}
	if !known || reflect.DeepEqual(to.Interface(), from.Interface()) {
		return false
	}
	to.Set(from)
	return true
}

// keyOf returns the steps of the key that a mistake of Validate begins with.
func keyOf(service string, err error) []string {
	key, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), service+": "), " ")
	return steps(strings.TrimSuffix(key, ":"))
}

// steps splits a key such as rules[3].action or ports[one].
func steps(key string) (list []string) {
	for _, part := range strings.Split(key, ".") {
		name, rest, _ := strings.Cut(part, "[")
		list = append(list, name)
		for rest != "" {
			var index string
			index, rest, _ = strings.Cut(rest, "]")
			list = append(list, index)
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return list
}

// find returns the line of a key in a value, or of the longest part of its path
// that exists; 0 if not even the first step exists.
func find(v document.Value, path []string) (line int) {
	for _, step := range path {
		at := 0
		for _, e := range v.Entries {
			if e.Key == step {
				at, v = e.Line, e.Value
				break
			}
		}
		if i, err := strconv.Atoi(step); at == 0 && err == nil && i >= 0 && i < len(v.Items) {
			v = v.Items[i]
			at = v.Line
		}
		if at == 0 {
			return line
		}
		line = at
	}
	return line
}

// meantKey is document.Meant for the keys of a structure.
func meantKey(key string, keys map[string]reflect.StructField) string {
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	return document.Meant(key, names)
}
