package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// TestReadable: tables have the names of switches, else their DPIDs without leading zeros, and
// leave other numbers alone.
func TestReadable(t *testing.T) {
	names := namesOf(func() (map[string]string, error) { return map[string]string{"0000000000000001": "s1"}, nil })
	for text, want := range map[string]string{
		"0000000000000001":                                "s1",
		"0000000000000001/3":                              "s1:3",
		"0000000000000002/12, 0000000000000001":           "2:12, s1",
		"1:0000000000000001:2 > 3:0000aabbccddeeff:local": "1:s1:2 > 3:aabbccddeeff:local",
		"0000000000000000":                                "0000000000000000",
		"5745030100000001":                                "5745030100000001",
		"00000000000000012":                               "00000000000000012",
		"x0000000000000001":                               "x0000000000000001",
		"":                                                "",
		"switch-0000000000000001.crt":                     "switch-0000000000000001.crt",
		"weft://switch/0000000000000001":                  "weft://switch/0000000000000001",
		"ryu.0000000000000001.rule":                       "ryu.0000000000000001.rule",
		"0000000000000001 0000000000000001 (0000000000000001)": "s1 s1 (s1)",
	} {
		if got := readable(text, names); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestSentences: a table has the names in what stands around its columns, too; and none, rather
// than nothing, if the controller does not say them.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		names namesOf
		wide  bool
		want  string
	}{
		{func() (map[string]string, error) { return map[string]string{"0000000000000001": "s1"}, nil }, false, "enters at s1:3\nSWITCH  TO\ns1      2:1\n"},
		{func() (map[string]string, error) { return nil, errors.New("not here") }, false, "enters at 1:3\nSWITCH  TO\n1       2:1\n"},
		{nil, true, "enters at 0000000000000001/3\nSWITCH            TO\n0000000000000001  0000000000000002/1\n"},
	} {
		var b strings.Builder
		w := &Table{Writer: tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0), wide: c.wide, names: c.names}
		fmt.Fprintf(w, "enters at %s\n", "0000000000000001/3")
		w.Row("SWITCH", "TO")
		w.Row("0000000000000001", "0000000000000002/1")
		if err := w.Flush(); err != nil || b.String() != c.want {
			t.Errorf("%q, %v; want %q", b.String(), err, c.want)
		}
	}
}

// TestSwitchText: a switch is a number or a name, a port of one behind it.
func TestSwitchText(t *testing.T) {
	for text, want := range map[string]string{"1": "0000000000000001", "0xab": "00000000000000ab", "s1": "s1", "beef": "000000000000beef", "two words": "", "": ""} {
		if got, err := SwitchText(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"s1:3": "s1/3", "1/local": "", "s1": "", "1/3": "0000000000000001/3", "a b:1": "", "s1:x": ""} {
		got, err := PlaceText(text)
		if err == nil && Place(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}
