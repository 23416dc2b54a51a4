package flow

import "testing"

func TestParseLocation(t *testing.T) {
	for text, want := range map[string]Location{
		"1:3": {Switch: 1, Port: 3}, "1/3": {Switch: 1, Port: 3}, "0x1f:4294967295": {Switch: 0x1f, Port: PortAny},
		"00:00:00:00:00:00:00:01:3": {Switch: 1, Port: 3}, Location{Switch: 7, Port: 9}.String(): {Switch: 7, Port: 9},
	} {
		if at, err := ParseLocation(text); err != nil || at != want {
			t.Errorf("%q: %v, %v; want %v", text, at, err, want)
		}
	}
	for _, text := range []string{"", "1", "1:", ":3", "1:x", "1:-3", "g:3", "1:4294967296", "1/3/"} {
		if at, err := ParseLocation(text); err == nil {
			t.Errorf("%q: %v", text, at)
		}
	}
}
