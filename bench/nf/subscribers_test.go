package nf

import (
	"encoding/json"
	"net/http"
	"testing"
)

// A UDM gets from the UDR what it authenticates a subscriber with, and may say what it changes.
func TestSubscribers(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	udr, _ := run(t, nrf, UDR)
	const data = "/nudr-dr/v1/subscription-data/imsi-999700000000001/authentication-data/"
	for _, test := range []struct {
		method, path, kind, body string
		status                   int
	}{
		{"PATCH", data + "authentication-subscription", "application/json-patch+json", `[{"op":"replace","path":"/sequenceNumber","value":{"sqn":"ff9bb4d0b627"}}]`, http.StatusNoContent},
		{"PUT", data + "authentication-status", "application/json", `{"success": true}`, http.StatusNoContent},
		{"DELETE", data + "authentication-status", "", "", http.StatusNoContent},
		{"GET", data + "authentication-status", "", "", http.StatusMethodNotAllowed},
		{"GET", "/nudr-dr/v1/policy-data", "", "", http.StatusNotFound},
	} {
		if resp, text := ask(t, udr.Endpoint, test.method, test.path, test.kind, test.body); resp.StatusCode != test.status {
			t.Errorf("%s %s: %s %s, want %d", test.method, test.path, resp.Status, text, test.status)
		}
	}
	var got struct {
		Method string `json:"authenticationMethod"`
		Key    string `json:"encPermanentKey"`
		OPc    string `json:"encOpcKey"`
		AMF    string `json:"authenticationManagementField"`
		Number struct {
			SQN string `json:"sqn"`
		} `json:"sequenceNumber"`
	}
	resp, text := ask(t, udr.Endpoint, "GET", data+"authentication-subscription", "", "")
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get(InstanceHeader) != udr.ID ||
		got.Method != "5G_AKA" || len(got.Key) != 32 || len(got.OPc) != 32 || len(got.AMF) != 4 || len(got.Number.SQN) != 12 {
		t.Errorf("%s %s: %v", resp.Status, text, err)
	}
}
