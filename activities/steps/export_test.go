package steps

// ForgetReports removes the reports of an earlier run.
var ForgetReports = forgetReports
