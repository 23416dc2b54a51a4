package sbi

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPatch(t *testing.T) {
	const document = `{"nfStatus": "SUSPENDED", "load": 1, "a/b": {"~": [1, 2, 3]}, "big": 12345678901234567890}`
	for _, c := range []struct{ patch, want string }{
		{`[{"op":"replace","path":"/nfStatus","value":"REGISTERED"},{"op":"replace","path":"/load","value":37}]`,
			`{"nfStatus": "REGISTERED", "load": 37, "a/b": {"~": [1, 2, 3]}, "big": 12345678901234567890}`},
		{`[{"op":"add","path":"/a~1b/~0/1","value":null},{"op":"add","path":"/a~1b/~0/-","value":{}}]`,
			`{"nfStatus": "SUSPENDED", "load": 1, "a/b": {"~": [1, null, 2, 3, {}]}, "big": 12345678901234567890}`},
		{`[{"op":"remove","path":"/a~1b/~0/0"},{"op":"move","from":"/a~1b/~0/1","path":"/x"},{"op":"copy","from":"/x","path":"/load"},{"op":"test","path":"/load","value":3}]`,
			`{"nfStatus": "SUSPENDED", "load": 3, "a/b": {"~": [2]}, "x": 3, "big": 12345678901234567890}`},
		{`[{"op":"copy","from":"/a~1b","path":"/c"},{"op":"add","path":"/c/~0/0","value":0}]`,
			`{"nfStatus": "SUSPENDED", "load": 1, "a/b": {"~": [1, 2, 3]}, "c": {"~": [0, 1, 2, 3]}, "big": 12345678901234567890}`},
		{`[{"op":"replace","path":"/a~1b/~0/2","value":9},{"op":"move","from":"/load","path":"/load"}]`,
			`{"nfStatus": "SUSPENDED", "load": 1, "a/b": {"~": [1, 2, 9]}, "big": 12345678901234567890}`},
	} {
		items, err := ParsePatch([]byte(c.patch))
		if err != nil {
			t.Errorf("%s: %v", c.patch, err)
			continue
		}
		if got, err := Apply([]byte(document), items); err != nil || !sameJSON(t, got, []byte(c.want)) {
			t.Errorf("%s: %s, %v, want %s", c.patch, got, err, c.want)
		}
	}
}

func TestPatchRefused(t *testing.T) {
	for patch, want := range map[string]string{
		`{}`:                                 "want an array of operations",
		`[]`:                                 "0 operations",
		`[{"op":"add","path":"","value":1}]`: "want the JSON pointer of a member (failed operation index= 0)",
		`[{"op":"add","path":"/x"}]`:         "/x: has no value",
		`[{"op":"add","path":"/x","value":1},{"op":"merge","path":"/y"}]`: "/y: want add, copy, move, remove, replace or test for op (failed operation index= 1)",
		`[{"op":"move","path":"/x"}]`:                                     "want a JSON pointer for from",
		`[{"op":"replace","path":"/x","value":1}]`:                        "/x: there is no such value",
		`[{"op":"remove","path":"/list/3"}]`:                              "there is no such value",
		`[{"op":"remove","path":"/list/01"}]`:                             "there is no such value",
		`[{"op":"remove","path":"/list/-"}]`:                              "there is no such value",
		`[{"op":"add","path":"/list/4","value":1}]`:                       "there is no array or object",
		`[{"op":"add","path":"/none/0","value":1}]`:                       "there is no such value",
		`[{"op":"add","path":"/load/x","value":1}]`:                       "there is no array or object",
		`[{"op":"test","path":"/load","value":"1"}]`:                      "the value is another",
		`[{"op":"move","from":"/list","path":"/list/0"}]`:                 "into itself",
		"[" + strings.Repeat(`{"op":"copy","from":"/list","path":"/list/-"},`, 60) + `{"op":"remove","path":"/x"}]`: "copies too much",
		"[" + strings.Repeat(`{"op":"remove","path":"/x"},`, 128) + `{"op":"remove","path":"/x"}]`:                  "129 operations",
	} {
		items, err := ParsePatch([]byte(patch))
		if err == nil {
			_, err = Apply([]byte(`{"load": 1, "list": [1, 2, 3]}`), items)
		}
		if err == nil || !strings.Contains(err.Error(), want) || ProblemOf(err).Status != 400 {
			t.Errorf("%.80s: %v, want %q", patch, err, want)
		}
	}
}

func TestChanges(t *testing.T) {
	items, err := ParsePatch([]byte(`[{"op":"test","path":"/a","value":1},{"op":"copy","path":"/b","from":"/a"},{"op":"replace","path":"/a","value":2}]`))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(Changes(items))
	if want := `[{"op":"ADD","path":"/b","from":"/a"},{"op":"REPLACE","path":"/a","newValue":2}]`; string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), []byte(`[{"op":"add","path":"/a/0","value":{}},{"op":"move","from":"/a/1","path":"/b"}]`))
	f.Add([]byte(`{"a":null}`), []byte(`[{"op":"add","path":"/a/0","value":1}]`))
	f.Add([]byte(`{"a":[]}`), []byte(`[{"op":"copy","from":"/a","path":"/a/-"},{"op":"copy","from":"/a","path":"/a/-"},{"op":"test","path":"/a/0","value":[]}]`))
	f.Add([]byte(`[]`), []byte(`[{"op":"replace","path":"/","value":1},{"op":"remove","path":"/0"}]`))
	f.Fuzz(func(t *testing.T, document, patch []byte) {
		items, err := ParsePatch(patch)
		if err != nil || DefaultLimits.Check(document) != nil {
			return
		}
		if got, err := Apply(document, items); err == nil && !json.Valid(got) {
			t.Fatalf("%s", got)
		}
	})
}
