package sbi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestAgreed: what several profiles say together, by what each says.
func TestAgreed(t *testing.T) {
	for _, c := range []struct{ name, a, b, want string }{
		{"the same", `{"x": 1.50, "y": "é"}`, `{"x": 1.50, "y": "é"}`, `{"x": 1.50, "y": "é"}`},
		{"the same, written otherwise", `{"x": {"a": 1, "b": 2}}`, `{"x": {"b": 2, "a": 1}}`, `{"x": {"a": 1, "b": 2}}`},
		{"of one only", `{"x": 1}`, `{}`, `null`},
		{"null is none", `{"x": null}`, `{"x": null}`, `null`},
		{"texts that differ", `{"x": "a"}`, `{"x": "b"}`, `null`},
		{"types that differ", `{"x": ["a"]}`, `{"x": {"a": 1}}`, `null`},
		{"lists", `{"x": [1, 2, 2]}`, `{"x": [3, 2]}`, `{"x": [2]}`},
		{"lists of nothing in common", `{"x": [1]}`, `{"x": [2]}`, `null`},
		{"lists that add", `{"plmnList": [1, 2]}`, `{"plmnList": [2, 3]}`, `{"plmnList": [1, 2, 3]}`},
		{"a list without items is as none", `{"plmnList": [1]}`, `{"plmnList": []}`, `null`},
		{"subscriptions of one", `{"defaultNotificationSubscriptions": [1]}`, `{}`, `{"defaultNotificationSubscriptions": [1]}`},
		{"members of members", `{"x": {"a": 1, "b": [1], "c": {"d": 1, "e": 2}}}`, `{"x": {"a": 2, "b": [1], "c": {"d": 1}}}`, `{"x": {"b": [1], "c": {"d": 1}}}`},
		{"lists of an info", `{"amfInfo": {"a": [1], "b": "x"}}`, `{"amfInfo": {"a": [2], "b": "y"}}`, `{"amfInfo": {"a": [1, 2]}}`},
		{"features", `{"supportedFeatures": "1F7"}`, `{"supportedFeatures": "f3"}`, `{"supportedFeatures": "f3"}`},
		{"features of nothing in common", `{"supportedFeatures": "10"}`, `{"supportedFeatures": "01"}`, `null`},
		{"features that are none", `{"supportedFeatures": "x"}`, `{"supportedFeatures": "y"}`, `null`},
	} {
		var a, b Unknown
		if json.Unmarshal([]byte(c.a), &a) != nil || json.Unmarshal([]byte(c.b), &b) != nil {
			t.Fatal(c.name)
		}
		got, _ := json.Marshal(Agreed([]Unknown{a, b}))
		if !sameJSON(t, got, []byte(c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestServes: which instances can stand in for each other.
func TestServes(t *testing.T) {
	for members, want := range map[string]string{
		`{"udmInfo": {"groupId": "", "x": [1], "supiRanges": []}}`:                           "",
		`{"udmInfo": {"groupId": "a", "supiRanges": [{"start": "1"}]}, "vendorRanges": [1]}`: "udmInfo/groupId udmInfo/supiRanges",
		`{"amfInfo": {"amfSetId": "1", "guamiList": [1]}}`:                                   "amfInfo/amfSetId",
		`{"udmInfoList": {"0": {"routingIndicators": ["1"]}}}`:                               "udmInfoList/0/routingIndicators",
		`{"chfInfo": {"supiRangeList": [1], "primaryChfInstance": "x"}}`:                     "chfInfo/supiRangeList",
		`{"udmInfo": 7}`: "",
	} {
		p := &NFProfile{}
		if err := json.Unmarshal([]byte(members), p); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(p.Serves())), " "); got != want {
			t.Errorf("%s: %q, want %q", members, got, want)
		}
	}
}
