package scp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// rich is a profile that has most members.
const rich = `{"nfInstanceId": "{id5}", "nfInstanceName": "udm", "nfType": "UDM", "nfStatus": "REGISTERED", "heartBeatTimer": 10, "plmnList": [{"mcc": "286", "mnc": "06"}],
	"sNssais": [{"sst": 1, "sd": "000001", "sdRanges": [{"start": "000001", "end": "000002"}]}], "perPlmnSnssaiList": [{"plmnId": {"mcc": "286", "mnc": "06"}, "sNssaiList": [{"sst": 1}]}],
	"fqdn": "udm.example.org", "ipv4Addresses": ["{at5}"], "ipv6Addresses": [], "allowedPlmns": [{"mcc": "286", "mnc": "06"}], "allowedNfTypes": ["AMF"], "allowedNfDomains": ["."],
	"allowedNssais": [{"sst": 1}], "priority": 1, "capacity": 10, "load": 0, "locality": "east", "nfSetIdList": ["set1"], "udmInfo": {"groupId": "a", "supiRanges": [{"pattern": "."}]},
	"defaultNotificationSubscriptions": [{"notificationType": "N1_MESSAGES", "callbackUri": "http://{at5}:8000/n"}], "supportedFeatures": "7", "vendor": {"a": [1]},
	"nfServices": [{"serviceInstanceId": "0", "serviceName": "nudm-sdm", "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}], "scheme": "http", "nfServiceStatus": "REGISTERED",
		"fqdn": "udm.example.org", "ipEndPoints": [{"ipv4Address": "{at5}", "transport": "TCP", "port": 8000}], "apiPrefix": "", "allowedNfTypes": ["AMF"], "priority": 1, "capacity": 10,
		"load": 0, "nfServiceSetIdList": ["s"], "sNssais": [{"sst": 1}], "oauth2Required": false, "supportedFeatures": "7"}]}`

// odds are what members may be instead of what they should.
var odds = []string{
	`null`, `7`, `-1`, `1e9`, `true`, `""`, `"x"`, `"http://x:1"`, `[]`, `{}`, `[7]`, `["x"]`, `[{}]`, `{"x": 1}`,
	`"` + strings.Repeat("x", 3000) + `"`, `[` + strings.Repeat(`"x",`, 300) + `"x"]`,
}

// TestNobodyVanishes registers profiles with one member changed or removed. A consumer
// finds the instance if the NRF would, unless its registration was refused for hiding an
// address; the other instance stays found.
func TestNobodyVanishes(t *testing.T) {
	g := newRig(t)
	g.handler.Store(&mannered{fakeNRF: g.nrf})
	g.register(1, sbi.AMF, func(p *sbi.NFProfile) { p.FQDN, p.SNSSAIs = "amf.example.org", []sbi.Snssai{{SST: 1}} })
	g.register(6, sbi.UDM)
	var whole any
	text := strings.NewReplacer("{id5}", id(5), "{at5}", at(5)).Replace(rich)
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	refused, balanced, own := 0, 0, 0
	for _, pointer := range pointers(whole, "") {
		for _, odd := range append([]string{""}, odds...) {
			g.do(5, "DELETE", "/nnrf-nfm/v1/nf-instances/"+id(5), "")
			profile, err := replaced(text, pointer, odd)
			if err != nil {
				t.Fatal(pointer, odd, err)
			}
			resp, answer := g.do(5, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(5), profile)
			if resp.StatusCode == 400 || resp.StatusCode == 403 {
				refused++
			} else if resp.StatusCode != 201 {
				t.Fatalf("%s = %.100s: %s %s", pointer, odd, resp.Status, answer)
			}
			got, answer := g.do(1, "GET", discoveryPath+"?target-nf-type=UDM&requester-nf-type=AMF", "")
			found, err := sbi.ReadResult([]byte(answer))
			if err != nil {
				t.Fatal(pointer, odd, err)
			}
			ids := map[string]bool{}
			for _, x := range found.Raw {
				ids[x.ID] = true
			}
			switch represented := len(ids) > 1 && !ids[id(5)]; {
			case got.StatusCode != 200 || len(ids) == 0:
				t.Errorf("%s = %.100s: %s, found %v", pointer, odd, got.Status, ids)
			case resp.StatusCode != 201:
			case ids[id(5)]:
				own++
			case represented:
				balanced++
			case nrfFinds(profile):
				t.Errorf("%s = %.100s: the NRF has it, and it is not found", pointer, odd)
			}
		}
	}
	t.Logf("refused %d, balanced %d, handed on %d", refused, balanced, own)
	if refused == 0 || balanced == 0 || own == 0 {
		t.Error("want some of each")
	}
}

// nrfFinds reports whether an NRF finds a profile for an AMF, by its type, its status and
// who may use it.
func nrfFinds(text string) bool {
	var p struct {
		Type   string `json:"nfType"`
		Status string `json:"nfStatus"`
	}
	if json.Unmarshal([]byte(text), &p) != nil || p.Type != "UDM" || p.Status == "SUSPENDED" {
		return false
	}
	read, err := sbi.Read([]byte(text))
	amf := &sbi.Requester{NFType: sbi.AMF, FQDN: "amf.example.org", SNSSAIs: []sbi.Snssai{{SST: 1}}}
	return err == nil && slices.ContainsFunc(read.Services(), func(s sbi.NFService) bool { return s.NFServiceStatus != sbi.Suspended && read.Allows(amf, &s) })
}

// pointers returns the JSON pointers of all that a value has.
func pointers(v any, at string) (all []string) {
	switch of := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(append(all, at+"/"+name), pointers(of[name], at+"/"+name)...)
		}
	case []any:
		for i, item := range of {
			p := fmt.Sprintf("%s/%d", at, i)
			all = append(append(all, p), pointers(item, p)...)
		}
	}
	return all
}

// replaced returns a text with another value at a pointer, or without any.
func replaced(text, pointer, value string) (string, error) {
	op := "remove"
	if value != "" {
		op = "replace"
	}
	items := []sbi.PatchItem{{Op: op, Path: pointer, Value: json.RawMessage(value)}}
	b, err := sbi.Apply([]byte(text), items)
	return string(b), err
}
