package sbi

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// found returns the ids and services that a query finds.
func found(t *testing.T, query string, profiles ...*NFProfile) (string, error) {
	t.Helper()
	v, err := url.ParseQuery("target-nf-type=UDM&requester-nf-type=SMF&" + query)
	if err != nil {
		t.Fatal(err)
	}
	q, err := ParseQuery(v)
	if err != nil {
		return "", err
	}
	again, err := ParseQuery(q.Values())
	if q.Ignored = nil; err != nil || !reflect.DeepEqual(q, again) {
		t.Errorf("%s: %v: %+v, then %+v", query, err, q, again)
	}
	all, err := Search(profiles, q)
	var s []string
	for _, p := range all {
		for _, service := range p.Services() {
			s = append(s, p.NFInstanceID[34:]+" "+service.ServiceInstanceID)
		}
		if len(p.Services()) == 0 {
			s = append(s, p.NFInstanceID[34:])
		}
	}
	return strings.Join(s, ", "), err
}

func TestSearch(t *testing.T) {
	const all, none = "01 sdm-1, 01 uecm-1", ""
	for query, want := range map[string]string{
		"":                              all,
		"service-names=nudm-uecm":       "01 uecm-1",
		"service-names=nudm-x,nudm-sdm": "01 sdm-1",
		"service-names=nudm-sdm&service-names=nudm-uecm":             all,
		"service-names=nudm-ueau":                                    none, // is suspended
		"requester-nf-type=AMF":                                      all,  // the first one counts
		"target-nf-instance-id=9b8d1f6e-4b7e-41f0-9c3a-0d6f9f2f0a01": all,
		"target-nf-instance-id=9B8D1F6E-4B7E-41F0-9C3A-0D6F9F2F0A01": all,
		"target-nf-instance-id=9b8d1f6e-4b7e-41f0-9c3a-0d6f9f2f0a02": none,
		"target-nf-set-id=set1.udmset.5gc.mnc070.mcc999":             all,
		"target-nf-set-id=set2":                                      none,
		`snssais=[{"sst":1,"sd":"0000aB"}]`:                          all,
		`snssais={"sst":1,"sd":"0000ab"}`:                            all,
		`snssais=[{"sst":1}]`:                                        none,
		`snssais=[{"sst":1,"sd":"aB"}]`:                              all, // zeros are left out
		`snssais=[{"sst":2,"sd":"00001a"}]`:                          all,
		`snssais=[{"sst":2,"sd":"000020"}]`:                          none,
		`snssais=[{"sst":9},{"sst":2,"sd":"000010"}]`:                all,
		`target-plmn-list=[{"mcc":"999","mnc":"70"}]`:                all,
		`target-plmn-list=[{"mcc":"999","mnc":"71"}]`:                none,
		"preferred-locality=west":                                    all,
		"supi=imsi-1&dnn=internet":                                   all, // not known
	} {
		if got, err := found(t, query, udm(t)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
}

// What an instance serves in each network counts instead of what it serves in all.
func TestSlicesOfNetworks(t *testing.T) {
	per := []PlmnSnssai{{PLMNID: PlmnID{MCC: "286", MNC: "06"}, SNSSAIs: []Snssai{{SST: 1}}}, {PLMNID: PlmnID{MCC: "286", MNC: "07"}, SNSSAIs: []Snssai{{SST: 2, SD: "123"}}}}
	for where, edit := range map[string]func(*NFProfile){
		"instance": func(p *NFProfile) { p.PLMNList, p.PerPLMNSNSSAIs, p.NFServices = nil, per, nil },
		"service": func(p *NFProfile) {
			p.PLMNList, p.SNSSAIs, p.NFServices[0].PerPLMNSNSSAIs, p.NFServices = nil, nil, per, p.NFServices[:1]
		},
	} {
		for query, want := range map[string]bool{
			"":                                  true,
			`snssais=[{"sst":1}]`:               true,
			`snssais=[{"sst":2,"sd":"000123"}]`: true,
			`snssais=[{"sst":9}]`:               false,
			`snssais=[{"sst":1,"sd":"0000ab"}]`: false,
			`snssais=[{"sst":1}]&target-plmn-list=[{"mcc":"286","mnc":"06"}]`: true,
			`snssais=[{"sst":1}]&target-plmn-list=[{"mcc":"286","mnc":"07"}]`: false,
		} {
			if got, err := found(t, query, udm(t, edit)); err != nil || (got != "") != want {
				t.Errorf("%s, %s: %q, %v", where, query, got, err)
			}
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		name, query, want string // no want: forbidden
		edit              func(*NFProfile)
	}{
		{"all", "", "01 sdm-1, 01 uecm-1", func(*NFProfile) {}},
		{"the service's list counts instead", "", "01 uecm-1", func(p *NFProfile) { p.NFServices[0].AllowedNFTypes = []NFType{"X"} }},
		{"none of those asked for", "service-names=nudm-sdm", "", func(p *NFProfile) { p.NFServices[0].AllowedNFTypes = []NFType{"X"} }},
		{"type", "service-names=nudm-uecm", "", func(p *NFProfile) { p.AllowedNFTypes = []NFType{"X"} }},
		{"network", `requester-plmn-list=[{"mcc":"001","mnc":"01"}]`, "", func(p *NFProfile) { p.AllowedPLMNs = []PlmnID{{MCC: "002", MNC: "01"}} }},
		{"network of the NRF", "", "01 sdm-1, 01 uecm-1", func(p *NFProfile) { p.AllowedPLMNs = []PlmnID{{MCC: "002", MNC: "01"}} }},
		{"slice", `requester-snssais=[{"sst":2}]`, "", func(p *NFProfile) { p.AllowedNSSAIs = []Snssai{{SST: 1}} }},
		{"slice that is allowed", `requester-snssais=[{"sst":1,"sd":"FFFFFF"}]`, "01 sdm-1, 01 uecm-1", func(p *NFProfile) { p.AllowedNSSAIs = []Snssai{{SST: 1}} }},
		{"no slice said", "", "", func(p *NFProfile) { p.AllowedNSSAIs = []Snssai{{SST: 1}} }},
		{"domain", "requester-nf-instance-fqdn=amf.other.org", "", func(p *NFProfile) { p.AllowedNFDomains = []string{`\.example\.org$`} }},
		{"domain that is allowed", "requester-nf-instance-fqdn=amf.example.org", "01 sdm-1, 01 uecm-1", func(p *NFProfile) { p.AllowedNFDomains = []string{`\.example\.org$`} }},
		{"no name said", "", "", func(p *NFProfile) { p.AllowedNFDomains = []string{"."} }},
		{"no services", "", "01", func(p *NFProfile) { p.NFServices = nil }},
		{"no services, not allowed", "", "", func(p *NFProfile) { p.NFServices, p.AllowedNFTypes = nil, []NFType{"X"} }},
	} {
		got, err := found(t, c.query, udm(t, c.edit))
		if forbidden := err != nil && ProblemOf(err).Status == 403; forbidden != (c.want == "") || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	// What may be used is found, whatever else may not.
	other := udm(t, func(p *NFProfile) { p.AllowedNFTypes, p.NFServices = []NFType{"X"}, p.NFServices[1:2] })
	if got, err := found(t, "", other, udm(t)); err != nil || got != "01 sdm-1, 01 uecm-1" {
		t.Errorf("%q, %v", got, err)
	}
	all, err := Search([]*NFProfile{udm(t)}, &Query{TargetNFType: UDM, Requester: Requester{NFType: SMF}})
	b, _ := json.Marshal(all)
	if err != nil || strings.Contains(string(b), "allowed") || !strings.Contains(string(b), `"exact":12345678901234567890.12345`) {
		t.Errorf("%v: %s", err, b)
	}
	if p := udm(t); len(p.NFServices[0].AllowedNFTypes) != 1 {
		t.Error("the search has changed the profile")
	}
}

func TestOrder(t *testing.T) {
	profile := func(id, locality string, priority int) *NFProfile {
		return udm(t, func(p *NFProfile) {
			p.NFInstanceID, p.Locality, p.Priority, p.NFServices = p.NFInstanceID[:34]+id, locality, &priority, nil
		})
	}
	all := []*NFProfile{profile("11", "east", 5), profile("12", "west", 9), profile("13", "east", 1), profile("10", "east", 1)}
	for query, want := range map[string]string{
		"":                                "10, 13, 11, 12",
		"preferred-locality=west":         "12, 10, 13, 11",
		"preferred-locality=west&limit=2": "12, 10",
	} {
		if got, err := found(t, query, all...); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	suspended := profile("14", "", 0)
	suspended.NFStatus = Suspended
	if got, err := found(t, "", suspended); err != nil || got != "" {
		t.Errorf("%q, %v: a suspended instance is found", got, err)
	}
}

func TestParseQuery(t *testing.T) {
	for query, want := range map[string]string{
		"": "400 MANDATORY_QUERY_PARAM_MISSING: query target-nf-type: is missing: query requester-nf-type: is missing",
		"target-nf-type=A&requester-nf-type=a%20b":                          "400 MANDATORY_QUERY_PARAM_INCORRECT: query requester-nf-type: want a type",
		"target-nf-type=A&requester-nf-type=B&limit=0":                      "400 OPTIONAL_QUERY_PARAM_INCORRECT: query limit: want",
		"target-nf-type=A&requester-nf-type=B&snssais=[{]":                  "400 OPTIONAL_QUERY_PARAM_INCORRECT: query snssais: want a JSON array",
		`target-nf-type=A&requester-nf-type=B&snssais=[{"sst":1,"sd":"z"}]`: "400 OPTIONAL_QUERY_PARAM_INCORRECT: query snssais: /0/sd want six",
		"target-nf-type=A&requester-nf-type=B&target-nf-instance-id=x":      "400 OPTIONAL_QUERY_PARAM_INCORRECT: query target-nf-instance-id: want a UUID",
		"target-nf-type=A&requester-nf-type=B&service-names=a%20b":          "400 OPTIONAL_QUERY_PARAM_INCORRECT: query service-names: want names",
	} {
		v, _ := url.ParseQuery(query)
		if _, err := ParseQuery(v); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	q, err := ParseQuery(url.Values{"target-nf-type": {"A"}, "requester-nf-type": {"B"}, "tai": {"x"}, "dnn": {"y"}})
	if err != nil || !slices.Equal(q.Ignored, []string{"dnn", "tai"}) {
		t.Errorf("%v: ignored %q", err, q.Ignored)
	}
	r := Requester{PLMNs: []PlmnID{{MCC: "001", MNC: "01"}}}
	if r.Complete(udm(t)); r.PLMNs[0].MCC != "001" || len(r.SNSSAIs) != 2 {
		t.Errorf("completed to %+v", r)
	}
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"target-nf-type=UDM&requester-nf-type=AMF", `target-nf-type=UDM&requester-nf-type=AMF&snssais=[{"sst":1}]&limit=1`,
		"target-nf-type=UDM&requester-nf-type=AMF&service-names=,,a&target-nf-instance-id-list=9b8d1f6e-4b7e-41f0-9c3a-0d6f9f2f0a01",
		`target-nf-type=UDM&requester-nf-type=AMF&target-plmn-list={"mcc":"999","mnc":"70"}`, "&%zz;=",
	} {
		f.Add(query)
	}
	p := udm(f)
	f.Fuzz(func(t *testing.T, query string) {
		v, _ := url.ParseQuery(query) // of a damaged query, what could be read
		q, err := ParseQuery(v)
		if err != nil {
			return
		}
		if again, err := ParseQuery(q.Values()); err != nil {
			t.Fatalf("%+v, then %+v, %v", q, again, err)
		}
		if all, err := Search([]*NFProfile{p}, q); err == nil && all == nil {
			t.Fatal("nothing is not an empty list")
		}
	})
}
