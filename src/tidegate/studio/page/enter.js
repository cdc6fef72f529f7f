// From the address with the token to the page: the address with the token leaves the history.
location.replace(`/${location.hash}`);
