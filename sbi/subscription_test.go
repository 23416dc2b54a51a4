package sbi

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSubscription(t *testing.T) {
	const uri = `"nfStatusNotificationUri": "http://10.0.0.9:7777/notify", "reqNfType": "AMF"`
	for text, want := range map[string]bool{
		`{` + uri + `}`: true,
		`{` + uri + `, "subscrCond": {"nfType": "UDM"}}`:                                                                 true,
		`{` + uri + `, "subscrCond": {"nfType": "SMF"}}`:                                                                 false,
		`{` + uri + `, "subscrCond": {"nfInstanceId": "9B8D1F6E-4B7E-41F0-9C3A-0D6F9F2F0A01"}}`:                          true,
		`{` + uri + `, "subscrCond": {"nfInstanceIdList": ["x"]}}`:                                                       false,
		`{` + uri + `, "subscrCond": {"serviceName": "nudm-sdm"}}`:                                                       true,
		`{` + uri + `, "subscrCond": {"conditionType": "SERVICE_NAME_LIST_COND", "serviceNameList": ["x", "nudm-sdm"]}}`: true,
		`{` + uri + `, "subscrCond": {"serviceName": "nudm-mt"}}`:                                                        false,
		`{` + uri + `, "subscrCond": {"snssaiList": [{"sst": 3}]}}`:                                                      false,
		`{` + uri + `, "subscrCond": {"nfSetId": "set2"}}`:                                                               false,
		`{` + uri + `, "reqNotifEvents": ["NF_DEREGISTERED"]}`:                                                           false,
		`{` + uri + `, "reqNotifEvents": ["NF_REGISTERED"], "x": [null]}`:                                                true,
		strings.Replace(`{`+uri+`}`, "AMF", "PCF", 1):                                                                    false, // is not allowed to use it
	} {
		s := &SubscriptionData{}
		if err := json.Unmarshal([]byte(text), s); err != nil || s.Check() != nil {
			t.Errorf("%s: %v, %v", text, err, s.Check())
		}
		if s.Wants(NFRegistered, udm(t)) != want {
			t.Errorf("%s: wants it: want %v", text, want)
		}
		if b, err := json.Marshal(s); err != nil || !sameJSON(t, b, []byte(text)) {
			t.Errorf("%s became %s, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{
		`{}`: "MANDATORY_IE_MISSING: /nfStatusNotificationUri",
		`{"nfStatusNotificationUri": "file:///etc/passwd"}`:           "MANDATORY_IE_INCORRECT: /nfStatusNotificationUri",
		`{` + uri + `, "subscrCond": {"amfSetId": "1"}}`:              "/subscrCond: want",
		`{` + uri + `, "reqNotifEvents": ["X"]}`:                      "/reqNotifEvents/0: want",
		`{` + uri + `, "validityTime": "tomorrow"}`:                   "/validityTime: want",
		`{` + uri + `, "subscrCond": {"snssaiList": [{"sd": "zz"}]}}`: "/subscrCond/snssaiList/0/sd",
	} {
		s := &SubscriptionData{}
		err := json.Unmarshal([]byte(text), s)
		if err == nil {
			err = s.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzSubscription(f *testing.F) {
	f.Add([]byte(`{"nfStatusNotificationUri":"http://a/b","subscrCond":{"nfType":"UDM"},"validityTime":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"subscrCond":{"snssaiList":[{}]},"reqSnssais":[null]}`))
	p := udm(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &SubscriptionData{}
		if DefaultLimits.Check(b) != nil || json.Unmarshal(b, s) != nil {
			return
		}
		_ = s.Check()
		s.Wants(NFRegistered, p)
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}
