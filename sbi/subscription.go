package sbi

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// A SubscriptionData asks the NRF to notify somebody of what happens to
// instances.
type SubscriptionData struct {
	NotificationURI string      `json:"nfStatusNotificationUri"`
	SubscriptionID  string      `json:"subscriptionId,omitzero"` // the NRF's
	Cond            *SubscrCond `json:"subscrCond,omitzero"`     // nil: all instances
	Events          []NFEvent   `json:"reqNotifEvents,omitzero"` // none: all
	ValidityTime    *time.Time  `json:"validityTime,omitzero"`
	ReqNFType       NFType      `json:"reqNfType,omitzero"`
	ReqNFInstanceID string      `json:"reqNfInstanceId,omitzero"`
	ReqNFFQDN       string      `json:"reqNfFqdn,omitzero"`
	ReqPLMNs        []PlmnID    `json:"reqPlmnList,omitzero"`
	ReqSNSSAIs      []Snssai    `json:"reqSnssais,omitzero"`
	Unknown         Unknown
}

// A SubscrCond says of which instances; one of its members does.
type SubscrCond struct {
	NFInstanceID     string   `json:"nfInstanceId,omitzero"`
	NFInstanceIDList []string `json:"nfInstanceIdList,omitzero"`
	NFType           NFType   `json:"nfType,omitzero"`
	ServiceName      string   `json:"serviceName,omitzero"`
	ConditionType    string   `json:"conditionType,omitzero"`
	ServiceNameList  []string `json:"serviceNameList,omitzero"`
	SNSSAIList       []Snssai `json:"snssaiList,omitzero"`
	NFSetID          string   `json:"nfSetId,omitzero"`
	Unknown          Unknown
}

// An NFEvent is what happens to an instance.
type NFEvent string

// The events of TS 29.510.
const (
	NFRegistered     NFEvent = "NF_REGISTERED"
	NFDeregistered   NFEvent = "NF_DEREGISTERED"
	NFProfileChanged NFEvent = "NF_PROFILE_CHANGED"
)

// A NotificationData tells a subscriber of an event.
type NotificationData struct {
	Event          NFEvent      `json:"event"`
	NFInstanceURI  string       `json:"nfInstanceUri"`
	NFProfile      *NFProfile   `json:"nfProfile,omitzero"`      // or ProfileChanges, or neither if it is gone
	ProfileChanges []ChangeItem `json:"profileChanges,omitzero"` //
	Unknown        Unknown
}

// Check returns what is wrong with a subscription, as a ProblemDetails.
func (s *SubscriptionData) Check() error {
	var w wrong
	w.mandatory("/nfStatusNotificationUri", s.NotificationURI, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && len(text) <= mostText
	}, "want a URI of HTTP")
	each(&w, "/reqNotifEvents", s.Events, func(at string, e NFEvent) {
		w.optional(at, e == NFRegistered || e == NFDeregistered || e == NFProfileChanged, "want NF_REGISTERED, NF_DEREGISTERED or NF_PROFILE_CHANGED")
	})
	w.optional("/reqNfInstanceId", s.ReqNFInstanceID == "" || ValidInstanceID(s.ReqNFInstanceID), "want a UUID")
	w.optional("/reqNfType", s.ReqNFType == "" || typeForm.MatchString(string(s.ReqNFType)), "want a type such as AMF")
	w.fqdn("/reqNfFqdn", s.ReqNFFQDN)
	each(&w, "/reqPlmnList", s.ReqPLMNs, w.plmn)
	each(&w, "/reqSnssais", s.ReqSNSSAIs, w.snssai)
	if c := s.Cond; c != nil {
		w.optional("/subscrCond", !c.empty(), "want nfInstanceId, nfInstanceIdList, nfType, serviceName, serviceNameList, snssaiList or nfSetId; other conditions are not served")
		w.optional("/subscrCond/nfInstanceId", c.NFInstanceID == "" || ValidInstanceID(c.NFInstanceID), "want a UUID")
		w.optional("/subscrCond/nfType", c.NFType == "" || typeForm.MatchString(string(c.NFType)), "want a type such as AMF")
		w.few("/subscrCond/nfInstanceIdList", len(c.NFInstanceIDList))
		w.few("/subscrCond/serviceNameList", len(c.ServiceNameList))
		each(&w, "/subscrCond/snssaiList", c.SNSSAIList, w.snssai)
	}
	return w.problem()
}

func (c *SubscrCond) empty() bool {
	return c.NFInstanceID == "" && len(c.NFInstanceIDList) == 0 && c.NFType == "" && c.ServiceName == "" && len(c.ServiceNameList) == 0 &&
		len(c.SNSSAIList) == 0 && c.NFSetID == ""
}

// Wants reports whether a subscriber is to be told of an event of an instance,
// which it must be allowed to use.
func (s *SubscriptionData) Wants(e NFEvent, p *NFProfile) bool {
	r := Requester{NFType: s.ReqNFType, InstanceID: s.ReqNFInstanceID, FQDN: s.ReqNFFQDN, PLMNs: s.ReqPLMNs, SNSSAIs: s.ReqSNSSAIs}
	return (len(s.Events) == 0 || slices.Contains(s.Events, e)) && (s.Cond == nil || s.Cond.matches(p)) && p.Allows(&r, nil)
}

func (c *SubscrCond) matches(p *NFProfile) bool {
	is := func(id string) bool { return strings.EqualFold(id, p.NFInstanceID) }
	serves := func(name string) bool {
		return slices.ContainsFunc(p.Services(), func(s NFService) bool { return s.ServiceName == name })
	}
	switch {
	case c.NFInstanceID != "" && !is(c.NFInstanceID):
	case len(c.NFInstanceIDList) > 0 && !slices.ContainsFunc(c.NFInstanceIDList, is):
	case c.NFType != "" && c.NFType != p.NFType:
	case c.ServiceName != "" && !serves(c.ServiceName):
	case len(c.ServiceNameList) > 0 && !slices.ContainsFunc(c.ServiceNameList, serves):
	case len(c.SNSSAIList) > 0 && len(p.SNSSAIs) > 0 && !common(p.SNSSAIs, c.SNSSAIList, Snssai.has):
	case c.NFSetID != "" && !slices.Contains(p.NFSetIDList, c.NFSetID):
	default:
		return true
	}
	return false
}

func (s *SubscriptionData) UnmarshalJSON(b []byte) error { return decode(b, s) }
func (s SubscriptionData) MarshalJSON() ([]byte, error)  { return encode(s) }
func (c *SubscrCond) UnmarshalJSON(b []byte) error       { return decode(b, c) }
func (c SubscrCond) MarshalJSON() ([]byte, error)        { return encode(c) }
func (n *NotificationData) UnmarshalJSON(b []byte) error { return decode(b, n) }
func (n NotificationData) MarshalJSON() ([]byte, error)  { return encode(n) }
