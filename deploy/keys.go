package deploy

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
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
	p := reflect.PointerTo(t)
	for _, unmarshaler := range []reflect.Type{
		reflect.TypeFor[encoding.TextUnmarshaler](), reflect.TypeFor[yaml.BytesUnmarshaler](), reflect.TypeFor[yaml.InterfaceUnmarshaler](),
	} {
		if p.Implements(unmarshaler) {
			return true
		}
	}
	return false
}

func allowed(keys map[string]reflect.StructField) string {
	return orNone(slices.Sorted(maps.Keys(keys)))
}

// unknown reports the keys in a node that a type has no place for, and
// mappings and lists where it wants others.
func (c *change) unknown(name string, n ast.Node, t reflect.Type) (errs []error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	n = behind(n)
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		keys, isStruct := structKeys(t)
		for _, entry := range entries(n) {
			key := keyOf(entry)
			switch field, ok := keys[key]; {
			case ok:
				errs = append(errs, c.unknown(name+"."+key, entry.Value, field.Type)...)
			case isStruct:
				errs = append(errs, fmt.Errorf("%s: unknown key %s.%s; allowed: %s%s", c.place(entry.Key), name, key, allowed(keys), meantKey(key, keys)))
			case t.Kind() == reflect.Map:
				errs = append(errs, c.unknown(name+"."+key, entry.Value, t.Elem())...)
			}
		}
		if !isStruct && t.Kind() != reflect.Map && t.Kind() != reflect.Interface && !readsItself(t) {
			errs = append(errs, fmt.Errorf("%s: %s: want %s, not keys with values", c.place(n), name, wanted(t)))
		}
	case *ast.SequenceNode:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			if t.Kind() != reflect.Interface && !readsItself(t) {
				errs = append(errs, fmt.Errorf("%s: %s: want %s, not a list", c.place(n), name, wanted(t)))
			}
			return errs
		}
		for i, v := range n.Values {
			errs = append(errs, c.unknown(fmt.Sprintf("%s[%d]", name, i), v, t.Elem())...)
		}
	case *ast.NullNode:
		errs = append(errs, fmt.Errorf("%s: %s: no value; give one, or take the key out", c.place(n), name))
	default:
		if keys, ok := structKeys(t); ok {
			errs = append(errs, fmt.Errorf("%s: %s: want keys with values; allowed: %s", c.place(n), name, allowed(keys)))
		}
	}
	return errs
}

// behind returns what an anchor or a tag stands before.
func behind(n ast.Node) ast.Node {
	for {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.TagNode:
			n = at.Value
		default:
			return n
		}
	}
}

// entries returns the entries of a mapping; a mapping of one has its own type.
func entries(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func keyOf(entry *ast.MappingValueNode) string {
	return strings.TrimSpace(entry.Key.GetToken().Value)
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
