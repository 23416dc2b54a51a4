package sbi

import (
	"net/http"
	"testing"
	"time"
)

const someID = "54804518-4191-46b3-955c-ac631f953ed8"

// TestParseLoad: reports as producers write them, and what is none.
func TestParseLoad(t *testing.T) {
	at := time.Date(2020, 2, 4, 8, 49, 37, 0, time.UTC)
	const stamp = `Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; `
	for name, c := range map[string]struct {
		lci, oci  string
		want      []LoadReport
		malformed int
	}{
		"load of an instance":     {lci: stamp + "Load-Metric: 25%; NF-Instance: " + someID, want: []LoadReport{{Percent: 25, At: at, Instance: someID}}},
		"overload of an instance": {oci: stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NF-Instance: " + someID, want: []LoadReport{{Overload: true, Percent: 50, At: at, Validity: 75 * time.Second, Instance: someID}}},
		"of a service, without blanks": {oci: `timestamp:"2020-02-04T08:49:37Z";Period-of-Validity:75s;Overload-Reduction-Metric:100%;NF-Service-Instance:serv1;NF-Inst:` + someID,
			want: []LoadReport{{Overload: true, Percent: 100, At: at, Validity: 75 * time.Second, Service: "serv1", Instance: someID}}},
		"several, and both": {lci: stamp + "Load-Metric: 25%; NF-Instance: " + someID + ", " + stamp + "Load-Metric: 5%; NF-Set: set1.udmset.5gc",
			oci:  stamp + "Period-of-Validity: 1s; Overload-Reduction-Metric: 0%; NF-Instance: " + someID,
			want: []LoadReport{{Percent: 25, At: at, Instance: someID}, {Percent: 5, At: at, Set: "set1.udmset.5gc"}, {Overload: true, At: at, Validity: time.Second, Instance: someID}}},
		"of slices and networks": {lci: stamp + `Load-Metric: 25%; NF-Instance: ` + someID + `; S-NSSAI: 2 & 1-A08923; DNN: ims & Internet; Relative-Capacity: 20%; New-Thing: x`,
			want: []LoadReport{{Percent: 25, At: at, Instance: someID, Part: LoadPart{"1-a08923&2", "ims&internet"}, Relative: 20}}},
		"overload of a slice": {oci: stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NF-Set: set1.udmset.5gc; S-NSSAI: 1-A08923; DNN: internet",
			want: []LoadReport{{Overload: true, Percent: 50, At: at, Validity: 75 * time.Second, Set: "set1.udmset.5gc", Part: LoadPart{"1-a08923", "internet"}}}},
		"of a slice in JSON":  {lci: stamp + `Load-Metric: 25%; NF-Instance: ` + someID + `; S-NSSAI: {"sst": 1}; DNN: internet`, malformed: 1},
		"of no network":       {lci: stamp + `Load-Metric: 25%; NF-Instance: ` + someID + `; S-NSSAI: 1; DNN: &`, malformed: 1},
		"of a capacity above": {lci: stamp + `Load-Metric: 25%; NF-Instance: ` + someID + `; S-NSSAI: 1; DNN: a; Relative-Capacity: 120%`, malformed: 1},
		"nothing":             {},
		"no scope":            {lci: stamp + "Load-Metric: 25%", malformed: 1},
		"no time":             {lci: "Load-Metric: 25%; NF-Instance: " + someID, malformed: 1},
		"no period":           {oci: stamp + "Overload-Reduction-Metric: 50%; NF-Instance: " + someID, malformed: 1},
		"too much":            {lci: stamp + "Load-Metric: 101%; NF-Instance: " + someID, malformed: 1},
		"negative":            {lci: stamp + "Load-Metric: -1%; NF-Instance: " + someID, malformed: 1},
		"the other":           {oci: stamp + "Period-of-Validity: 75s; Load-Metric: 50%; NF-Instance: " + someID, malformed: 1},
		"no id":               {lci: stamp + "Load-Metric: 1%; NF-Instance: ../x", malformed: 1},
		"twice":               {lci: stamp + "Load-Metric: 1%; Load-Metric: 2%; NF-Instance: " + someID, malformed: 1},
		"no header":           {lci: `"`, malformed: 1},
	} {
		h := http.Header{}
		if c.lci != "" {
			h[LoadHeader] = []string{c.lci}
		}
		if c.oci != "" {
			h[OverloadHeader] = []string{c.oci}
		}
		list, malformed := ParseLoad(h)
		if malformed != c.malformed || len(list) != len(c.want) {
			t.Errorf("%s: %+v, %d malformed", name, list, malformed)
			continue
		}
		for i, r := range list {
			if r.At.Equal(c.want[i].At) {
				r.At = c.want[i].At
			}
			if r != c.want[i] {
				t.Errorf("%s: %+v, want %+v", name, r, c.want[i])
			}
		}
	}
}

// FuzzParseLoad: no header does harm.
func FuzzParseLoad(f *testing.F) {
	f.Add(`Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Load-Metric: 25%; NF-Instance: ` + someID)
	f.Fuzz(func(t *testing.T, text string) {
		list, malformed := ParseLoad(http.Header{LoadHeader: {text}, OverloadHeader: {text}})
		if len(list) > 2*mostReports {
			t.Errorf("%d reports, %d malformed", len(list), malformed)
		}
		for _, r := range list {
			if r.Percent < 0 || r.Percent > 100 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestLoadPart: a part has what it names, and nothing that is not known.
func TestLoadPart(t *testing.T) {
	one, two := Snssai{SST: 1, SD: "A08923"}, Snssai{SST: 2}
	part := LoadPart{"1-a08923&2", "ims&internet"}
	for name, c := range map[string]struct {
		part   LoadPart
		slices []Snssai
		dnn    string
		want   bool
	}{
		"all, of nothing known": {LoadPart{}, nil, "", true},
		"all, of a slice":       {LoadPart{}, []Snssai{one}, "ims", true},
		"one of each":           {part, []Snssai{one}, "ims", true},
		"both slices":           {part, []Snssai{two, one}, "Internet", true},
		"another slice, too":    {part, []Snssai{one, {SST: 3}}, "ims", false},
		"the type without SD":   {part, []Snssai{{SST: 1}}, "ims", false},
		"another network":       {part, []Snssai{one}, "mms", false},
		"no network known":      {part, []Snssai{one}, "", false},
		"no slice known":        {part, nil, "ims", false},
		"slices alone":          {LoadPart{Slices: "1-000012"}, []Snssai{{SST: 1, SD: "12"}}, "", true},
	} {
		if got := c.part.Has(c.slices, c.dnn); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
