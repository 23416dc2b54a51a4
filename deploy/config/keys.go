package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// structKeys returns the fields of a configuration structure by key; false if
// the type is not one.
func structKeys(t reflect.Type) (map[string]reflect.StructField, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || readsItself(t) {
		return nil, false
	}
	keys := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || len(f.Index) > 1 {
			continue
		}
		tag, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case tag == "-":
		case slices.Contains(strings.Split(options, ","), "inline"):
			inner, _ := structKeys(f.Type)
			for key, in := range inner {
				in.Index = slices.Concat(f.Index, in.Index)
				keys[key] = in
			}
		case tag != "":
			keys[tag] = f
		default:
			keys[strings.ToLower(f.Name)] = f
		}
	}
	return keys, true
}

// readsItself reports whether values of the type have a way of their own of
// being read, so that their fields are no keys.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func allowed(keys map[string]reflect.StructField) string {
	return OrNone(slices.Sorted(maps.Keys(keys)))
}

// wanted describes the values of a type as somebody would write them.
func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration, such as 500ms or 3s"
	case readsItself(t):
		return "a " + t.Name()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		low := -1 << (t.Bits() - 1)
		return fmt.Sprintf("a whole number from %d to %d", low, -(low + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Slice, reflect.Array:
		return "a list, each of it " + wanted(t.Elem())
	case reflect.Map, reflect.Struct:
		return "keys with values"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "a " + t.String()
}

// deepCopy copies a value with all that it points to; what is not exported is
// copied as it is.
func deepCopy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(deepCopy(v.Elem()))
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(deepCopy(v.Index(i)))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(deepCopy(it.Key()), deepCopy(it.Value()))
		}
		return c
	}
	return v
}
