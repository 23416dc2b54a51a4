package deploy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weft/internal/document"
)

// blame adds to the mistakes that Validate found where the keys that they begin
// with are written, as far as that can be told.
func blame(service string, changes []change, err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range all.Unwrap() {
			errs = append(errs, blame(service, changes, e))
		}
		return errors.Join(errs...)
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), service+": "), " ")
	path := steps(strings.TrimSuffix(key, ":"))
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

// steps takes a key such as rules[3].action or ports[one] apart.
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

// find returns the line of what stands for a key in a value, or for as much of it
// as is there; 0 if not even its first step is.
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

// meantKey is meant for the keys of a structure.
func meantKey(key string, keys map[string]reflect.StructField) string {
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	return meant(key, names)
}

// meant asks whether the nearest of some names is meant by one that is unknown;
// empty if none is near.
func meant(name string, names []string) string {
	slices.Sort(names)
	best, least := "", max(1, len(name)/3)+1
	for _, n := range names {
		d := distance(name, n)
		if len(name) > 2 && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n) || strings.HasSuffix(n, "_"+name)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distanceMost is the longest name that is compared.
const distanceMost = 64

// distance returns how many letters are to be inserted, deleted, replaced or
// swapped with their neighbour to make one name of the other (optimal string
// alignment).
func distance(a, b string) int {
	if len(a) > distanceMost || len(b) > distanceMost {
		return distanceMost
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
