package archtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestHandlers: no service has more handlers of events of the network than the
// table allows, and the table allows no more than there are.
func TestHandlers(t *testing.T) {
	list, err := Handlers(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		t.Error(l)
	}
}

// TestHandlersAreCounted: one too many is found, and so is a number that is too high.
func TestHandlersAreCounted(t *testing.T) {
	source := "package stats\n\nfunc run() {\n" + strings.Repeat("\tweft.On(env, api.LinkChangedEvent, nil)\n", 2) + "\tweft.On(env, api.FlowsObservedEvent, nil)\n}\n"
	list, err := Handlers(fstest.MapFS{
		"services/stats/service.go": {Data: []byte(source)},
		"services/paths/service.go": {Data: []byte("package paths\n")},
	})
	if err != nil || len(list) != 2 ||
		!slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "stats has 2 handlers") }) ||
		!slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "paths has 0 handlers") }) {
		t.Errorf("%q, %v", list, err)
	}
}
