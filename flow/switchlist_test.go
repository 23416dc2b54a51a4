package flow_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

func TestSwitchList(t *testing.T) {
	type list = flow.SwitchList
	one := func(first, last flow.DPID) []flow.DPIDRange { return []flow.DPIDRange{{First: first, Last: last}} }
	for _, c := range []struct {
		items string // separated by ;
		want  list
		err   string // part of the error
	}{
		{"1", list{Ranges: one(1, 1)}, ""},
		{"1-8", list{Ranges: one(1, 8)}, ""},
		{"0xA-f", list{Ranges: one(10, 15)}, ""},
		{"00:00:00:00:00:00:00:01 - 2", list{Ranges: one(1, 2)}, ""},
		{" 10 ", list{Ranges: one(16, 16)}, ""},
		{"0-ffffffffffffffff", list{Ranges: one(0, ^flow.DPID(0))}, ""},
		{"rest", list{Rest: true}, ""},
		{"9;rest;1-2", list{Ranges: []flow.DPIDRange{{First: 9, Last: 9}, {First: 1, Last: 2}}, Rest: true}, ""},
		{"", list{}, `"": want a switch or a range of switches in hexadecimal digits, such as 10 or 1-8, or rest`},
		{"x", list{}, `"x": want a switch or a range`},
		{"-", list{}, `"-": want a switch or a range`},
		{"-1", list{}, `"-1": want a switch or a range`},
		{"1-", list{}, `"1-": want a switch or a range`},
		{"1;1-2-3", list{}, `"1-2-3": want a switch or a range`},
		{"!1", list{}, `"!1": want a switch or a range`},
		{"Rest", list{}, `"Rest": want a switch or a range`},
		{"11111111111111111", list{}, "want a switch or a range"},
		{"8 - 1", list{}, `"8 - 1": the range is empty, its end is before its beginning; write 1-8`},
	} {
		got, err := flow.ParseSwitchList(strings.Split(c.items, ";"))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, %v; want %+v, %s", c.items, got, err, c.want, c.err)
		}
	}
	l, err := flow.ParseSwitchList([]string{"1-8", "rest", "10"})
	if err != nil || !l.Names(8) || !l.Names(0x10) || l.Names(9) || l.Names(0) {
		t.Errorf("%+v, %v", l, err)
	}
	if got, want := strings.Join(l.Items(), " "), "0000000000000001-0000000000000008 0000000000000010 rest"; got != want {
		t.Errorf("it is written as %s; want %s", got, want)
	}
	var none flow.SwitchList
	if none.Names(0) || len(none.Items()) > 0 {
		t.Error("there is something in none")
	}
}

// FuzzParseSwitchList reads any item: what it takes has its ends in order and is
// the same after it was written and read.
func FuzzParseSwitchList(f *testing.F) {
	for _, seed := range []string{"rest", "1", "1-8", "0x1 - 00:02", "8-1", "-", "", "ffffffffffffffff", "1-2-3", "\x00", "０"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, item string) {
		l, err := flow.ParseSwitchList([]string{item})
		if err != nil {
			if !strings.HasPrefix(err.Error(), strconv.Quote(item)+": ") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %q", item, err)
			}
			return
		}
		if l.Rest == (len(l.Ranges) > 0) || len(l.Ranges) > 0 && (l.Ranges[0].First > l.Ranges[0].Last || !l.Names(l.Ranges[0].First) || !l.Names(l.Ranges[0].Last)) {
			t.Fatalf("%q: %+v", item, l)
		}
		if again, err := flow.ParseSwitchList(l.Items()); err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("%q: %+v, then %+v, %v", item, l, again, err)
		}
	})
}
