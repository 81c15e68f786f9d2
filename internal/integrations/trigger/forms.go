package trigger

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v75/github"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"pawl/internal/steward/delivery"
)

// The headers of pawl's own form.
const (
	SignatureHeader = "X-Pawl-Signature"
	DeliveryHeader  = "X-Pawl-Delivery"
)

// tolerance is how far a signed time may differ from ours, in either direction.
const tolerance = 5 * time.Minute

// request is a delivery whose route is known and whose body has been read.
type request struct {
	header http.Header
	body   []byte
	now    time.Time
}

// form says how one kind of sender proves who it is, and how its deliveries are read.
type form struct {
	// verify returns an error if the delivery was not made with the secret: errUnsigned or errStale, or errSecret if
	// the secret itself can't be used.
	verify func(r request, secret []byte) error
	// read returns the content of a verified delivery. If the delivery asks for no work, why says the reason.
	read func(r request) (e delivery.Event, why string, err error)
}

var (
	errUnsigned = errors.New("the delivery does not prove that its sender has this trigger's secret")
	errStale    = errors.New("the time at which the delivery was signed differs by more than 5 minutes from this machine's clock")
	errSecret   = errors.New("the trigger's secret cannot be used")
)

// forms are the values of `triggers[].from`.
var forms = map[string]form{
	"github":       {verifyHMAC(github.SHA256SignatureHeader), readGitHub},
	"standard":     {verifyStandard, readStandard},
	"alertmanager": {verifyBearer, readAlerts},
	"json":         {verifyHMAC(SignatureHeader), readJSON},
}

// verifyHMAC is for a signature in a header. It does not accept the SHA-1 signature, which GitHub still sends, too.
func verifyHMAC(header string) func(r request, secret []byte) error {
	return func(r request, secret []byte) error {
		signature := r.header.Get(header)
		if !strings.HasPrefix(signature, "sha256=") || github.ValidateSignature(signature, r.body, secret) != nil {
			return errUnsigned
		}
		return nil
	}
}

// verifyStandard checks the time after the signature, because a time that is not signed proves nothing.
func verifyStandard(r request, secret []byte) error {
	hook, err := webhooks.NewWebhook(string(secret))
	if err != nil {
		return fmt.Errorf("%w: it is not base64, with or without whsec_ before it", errSecret)
	}
	if hook.VerifyIgnoringTimestamp(r.body, r.header) != nil {
		return errUnsigned
	}
	seconds, err := strconv.ParseInt(r.header.Get(webhooks.HeaderWebhookTimestamp), 10, 64)
	if off := r.now.Sub(time.Unix(seconds, 0)); err != nil || off.Abs() > tolerance {
		return errStale
	}
	return nil
}

// verifyBearer is for a sender that can't sign. It compares digests, which takes the same time for every length.
func verifyBearer(r request, secret []byte) error {
	token, found := strings.CutPrefix(r.header.Get("Authorization"), "Bearer ")
	given, wanted := sha256.Sum256([]byte(token)), sha256.Sum256(secret)
	if !found || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
		return errUnsigned
	}
	return nil
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
