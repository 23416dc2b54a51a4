package ryu

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func n(i int64) *big.Int { return big.NewInt(i) }

// TestParseLiteral reads what Python's ast.literal_eval reads.
func TestParseLiteral(t *testing.T) {
	for text, want := range map[string]any{
		`{}`:                                 dict{},
		` {'a': 1, "b": [1, 2,],} `:          dict{"a": n(1), "b": []any{n(1), n(2)}},
		`{"a": True, "b": False, "c": None}`: dict{"a": true, "b": false, "c": nil},
		`{"a": true, "b": false, "c": null}`: dict{"a": true, "b": false, "c": nil},
		"{'a': 0x3,  # three\n'b': 0b11}":    dict{"a": n(3), "b": n(3)},
		`(1)`:                                n(1),
		`(1,)`:                               []any{n(1)},
		`()`:                                 []any{},
		`-0x10`:                              n(-16),
		`1_000`:                              n(1000),
		`1.5`:                                1.5,
		`1e3`:                                1000.0,
		`'it\'s' " so"`:                      "it's so",
		`"""a
b"""`: "a\nb",
		`b'\x00\xff'`:      "\x00\xff",
		`'\xe9\u20ac\101'`: "é€A",
		`r'\n'`:            `\n`,
		`{1: 2}`:           dict{"1": n(2)},
	} {
		if got, err := parseLiteral(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{
		``, `{`, `{"a"`, `{"a":`, `{"a" 1}`, `{"a": 1 "b": 2}`, `[1`, `[1 2]`, `'a`, "'a\nb'", `"\x0"`, `'\ud800`, `abc`, `1 2`, `012`, `0x`, `--1`, `1__0`,
		`{"a": open("x")}`, `"\U00110000"`, "\xff", `.`, `1e`, strings.Repeat("[", 100), strings.Repeat("9", 5000), `*`, `b`, `(`,
	} {
		if got, err := parseLiteral(text); err == nil {
			t.Errorf("%.40q is read as %#v", text, got)
		}
	}
}

// FuzzParseLiteral: what is JSON is read, and is what JSON says; nothing else
// does harm.
func FuzzParseLiteral(f *testing.F) {
	for _, s := range []string{`{"dpid": 1, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}`, `{'a': (1,), }`, `"\u00e9\/"`, `b'a' 'b'`, `-1.5e-3`, `[[[]]]`, `'''a'''`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseLiteral(text)
		var want any
		if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		if err != nil {
			if len(text) < digitsMax && !strings.Contains(err.Error(), "deep") && !strings.ContainsAny(text, "eE\v") {
				t.Fatalf("JSON %q: %v", text, err)
			}
			return
		}
		if s, ok := want.(string); ok && !strings.Contains(text, `\u`) && !strings.Contains(text, "\ufffd") && fmt.Sprint(got) != s {
			t.Fatalf("JSON %q: %q, want %q", text, got, s)
		}
	})
}
