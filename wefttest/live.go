package wefttest

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
)

// Live checks that a running service takes over each key that its Spec lists in
// Live: for each of them there must be a test, which configures the service,
// changes the key by Reconfigure, and sees what is otherwise then. They run in
// all modes.
func Live(t *testing.T, spec weft.Spec, tests map[string]func(*testing.T, *Harness)) {
	t.Helper()
	live := slices.DeleteFunc(Keys(spec.Config), func(key string) bool {
		return !slices.ContainsFunc(spec.Live, func(l string) bool { return l == "*" || l == key || strings.HasPrefix(key, l+".") })
	})
	for _, key := range live {
		if tests[key] == nil {
			t.Errorf("key %s of service %s is live; add a test that it takes effect, or take it out of the Spec's Live", key, spec.Name)
		}
	}
	for key, test := range tests {
		if !slices.Contains(live, key) {
			t.Errorf("there is a test for key %s, which service %s does not take over while it runs", key, spec.Name)
			continue
		}
		t.Run(key, func(t *testing.T) { Run(t, spec, test) })
	}
}

// Keys returns the keys of a configuration, those in structs joined by dots, in
// the order of its fields.
func Keys(c weft.Config) []string {
	if c == nil {
		return nil
	}
	return keysOf(reflect.TypeOf(c).Elem(), "")
}

func keysOf(t reflect.Type, prefix string) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			keys = append(keys, keysOf(f.Type, prefix)...)
		case name == "" || name == "-":
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			keys = append(keys, keysOf(f.Type, prefix+name+".")...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}
