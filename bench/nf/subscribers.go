package nf

// authenticationSubscription is the authentication data of every subscriber of a UDR
// (TS 29.505, AuthenticationSubscription): K and OPc of test set 1 of TS 35.208.
const authenticationSubscription = `{"authenticationMethod":"5G_AKA","encPermanentKey":"465b5ce8b199b49faa5f0a2ee238a6bc",` +
	`"encOpcKey":"cd63cb71954a9f4e48a5994e37a02baf","authenticationManagementField":"b9b9","sequenceNumber":{"sqn":"ff9bb4d0b607"}}`

// authenticationData are the requests of TS 29.504 that a UDM makes to authenticate a
// subscriber, and the answers, empty for 204. What they change is not kept.
var authenticationData = []struct{ pattern, answer string }{
	{"GET /nudr-dr/v1/subscription-data/{ue}/authentication-data/authentication-subscription", authenticationSubscription},
	{"PATCH /nudr-dr/v1/subscription-data/{ue}/authentication-data/authentication-subscription", ""},
	{"PUT /nudr-dr/v1/subscription-data/{ue}/authentication-data/authentication-status", ""},
	{"DELETE /nudr-dr/v1/subscription-data/{ue}/authentication-data/authentication-status", ""},
}
